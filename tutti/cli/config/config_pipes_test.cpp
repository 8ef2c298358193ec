// Tests configurations, and files that they name, in place of which something else lies.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/job/machine_file.h"
#include "tutti/cli/job/selection_file.h"
#include "tutti/train/network/tuning_file.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

class ConfigPipes : public ::testing::Test {
 protected:
  ConfigPipes() {
    EXPECT_EQ(::mkfifo(pipe_.c_str(), 0600), 0);
    scratch_.write("sparse", std::string("x"));
    EXPECT_EQ(::truncate(sparse_.c_str(), off_t{1} << 40), 0);
  }
  template <class Read>
  static std::string refusal(const Read& read) {
    try {
      read();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static std::string of_config(const fs::path& file) {
    return refusal([&] { read_config({.file = file.string()}); });
  }
  static bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  }

  const ScratchDirectory scratch_;
  const fs::path pipe_ = scratch_.path() / "pipe", sparse_ = scratch_.path() / "sparse";
};

TEST_F(ConfigPipes, AnIncludedOneIsNotWaitedFor) {
  for (const char* name : {"pipe", "sparse"}) {
    const fs::path file =
        scratch_.write("a.toml", fmt::format("include = \"{}\"\n[run]\nseed = 1\n", name));
    const std::string message = of_config(file);
    EXPECT_TRUE(holds(message, "a.toml:1:")) << message;
    EXPECT_TRUE(holds(message, "expected a configuration, found ")) << message;
  }
  EXPECT_TRUE(holds(of_config(sparse_), "found 1099511627776 bytes")) << of_config(sparse_);
}

TEST_F(ConfigPipes, OneOfAShellIsRead) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string text = "[run]\nseed = 17\n";
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), std::ssize(text));
  ::close(ends[1]);
  const ResolvedConfig read = read_config({.file = fmt::format("/dev/fd/{}", ends[0])});
  EXPECT_EQ(read.config.run.seed, 17);
  ::close(ends[0]);
}

TEST_F(ConfigPipes, FilesThatAConfigurationNamesAreNotWaitedFor) {
  for (const fs::path& path : {pipe_, sparse_}) {
    const std::string name = path.string();
    const std::string selection = refusal([&] { read_selection(name); }),
                      machine = refusal([&] { read_machine(path); }),
                      tuning = refusal([&] { train::read_tuning_file(path); });
    EXPECT_TRUE(holds(selection, name + ": expected a table of algorithms, found ")) << selection;
    EXPECT_TRUE(holds(machine, name)) << machine;
    EXPECT_TRUE(holds(tuning, name + ": expected a file of measured kernels, found ")) << tuning;
  }
}

}  // namespace
}  // namespace tutti::cli
