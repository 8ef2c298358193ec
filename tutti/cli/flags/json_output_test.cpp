#include "tutti/cli/flags/json_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tutti/base/json.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/command_line.h"

namespace tutti::cli {
namespace {

/// Runs `call` while the two streams of this process lead into files; returns their contents.
std::pair<std::string, std::string> written_by(auto&& call) {
  const ScratchDirectory scratch;
  const auto into = [&](int stream, const char* name) {
    const int before = dup(stream);
    const int file = open((scratch.path() / name).c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(file, stream);
    close(file);
    return before;
  };
  std::fflush(stdout);
  const int output = into(STDOUT_FILENO, "out"), errors = into(STDERR_FILENO, "err");
  call();
  give_back_output();
  std::fflush(stdout);
  dup2(output, STDOUT_FILENO), close(output);
  dup2(errors, STDERR_FILENO), close(errors);
  const auto text = [&](const char* name) {
    std::ifstream file(scratch.path() / name);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  return {text("out"), text("err")};
}

TEST(JsonOutput, IsAllThatTheStandardOutputGets) {
  const auto [output, errors] = written_by([] {
    std::printf("before\n");
    keep_output_for_json();
    std::printf("onednn_verbose,info\n");
    print_json_output(Json{{"a", 1}}, -1);
    std::printf("onednn_verbose,exec\n");
    EXPECT_EQ(write(STDOUT_FILENO, "raw\n", 4), 4);
    print_output("[]\n");
  });
  EXPECT_EQ(output, "before\n{\"a\":1}\n[]\n");
  EXPECT_EQ(errors, "onednn_verbose,info\nraw\nonednn_verbose,exec\n");
}

TEST(JsonOutput, VerbsPrintNothingElse) {
  setenv("ONEDNN_VERBOSE", "1", 1);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"bench", "ops", "--json", "--seconds", "1e-6", "--filter",
                                 "conv f32 n2c16d4h4w4 k16t2r2s2 stride2 bias relu"},
        {"model", "show", "lenet", "--batch", "2", "--json"},
        {"data", "list", "--json"},
        {"config", "--json"}}) {
    const auto [output, errors] = written_by([&] { EXPECT_EQ(run_command_line(words), 0); });
    EXPECT_FALSE(parse_json(output).empty()) << words[0];
  }
  unsetenv("ONEDNN_VERBOSE");
}

}  // namespace
}  // namespace tutti::cli
