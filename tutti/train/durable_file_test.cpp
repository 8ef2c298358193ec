#include "tutti/train/durable_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

TEST(ReplaceFile, ALinkStaysOneAndItsTargetGetsTheText) {
  const ScratchDirectory scratch;
  fs::create_symlink("target", scratch.path() / "link");
  for (const char* text : {"first", "second"}) {
    replace_file(scratch.path() / "link", text);
    EXPECT_TRUE(fs::is_symlink(scratch.path() / "link"));
    EXPECT_EQ(read_text(scratch.path() / "target"), text);
  }
}

TEST(ReplaceFile, APipeIsWrittenIntoAndStaysOne) {
  const ScratchDirectory scratch;
  const fs::path pipe = scratch.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  replace_file(pipe, "text");
  std::array<char, 8> got{};
  EXPECT_EQ(read(reader, got.data(), got.size()), 4);
  close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(ReplaceFile, SaysBeforehandWhereItCannotWrite) {
  const ScratchDirectory scratch;
  EXPECT_NO_THROW(check_replaceable(scratch.path() / "new"));
  EXPECT_FALSE(fs::exists(scratch.path() / "new"));
  EXPECT_THROW(check_replaceable(scratch.path()), IoError);
  try {
    check_replaceable(scratch.path() / "absent/file");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("absent/file: cannot be written"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tutti
