#include "tutti/keep/result_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/keep/durable_file.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

TEST(ResultFile, ALinkStaysOneAndItsTargetGetsTheText) {
  const ScratchDirectory scratch;
  fs::create_symlink("target", scratch.path() / "link");
  for (const char* text : {"first", "second"}) {
    write_result_file(scratch.path() / "link", text);
    EXPECT_TRUE(fs::is_symlink(scratch.path() / "link"));
    EXPECT_EQ(read_text(scratch.path() / "target"), text);
  }
}

TEST(ResultFile, APipeIsWrittenIntoAndStaysOne) {
  const ScratchDirectory scratch;
  const fs::path pipe = scratch.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_result_file(pipe, "text");
  std::array<char, 8> got{};
  EXPECT_EQ(read(reader, got.data(), got.size()), 4);
  close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(ResultFile, AnOpenDescriptorGetsTheTextAfterWhatStandsThere) {
  const ScratchDirectory scratch;
  const fs::path path = scratch.path() / "shells";  // as with `program > shells`
  const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, "table\n", 6), 6);
  write_result_file(fmt::format("/dev/fd/{}", file), "text\n");
  ASSERT_EQ(write(file, "end\n", 4), 4);
  close(file);
  EXPECT_EQ(read_text(path), "table\ntext\nend\n");
  EXPECT_THROW(check_result_file(fmt::format("/dev/fd/{}", file)), IoError) << "it is closed";

  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  fs::create_symlink(fmt::format("/proc/self/fd/{}", pipe_ends[1]), scratch.path() / "out");
  write_result_file(scratch.path() / "out", "text");
  std::array<char, 8> got{};
  EXPECT_EQ(read(pipe_ends[0], got.data(), got.size()), 4);
  EXPECT_THROW(check_result_file(fmt::format("/dev/fd/{}", pipe_ends[0])), IoError)
      << "it is for reading";
  for (const int end : pipe_ends) close(end);
}

TEST(ResultFile, ALinkWithoutATargetIsCheckedWhereItLeads) {
  const ScratchDirectory scratch;
  fs::create_symlink("absent/file", scratch.path() / "link");
  EXPECT_THROW(check_result_file(scratch.path() / "link"), IoError);
  fs::create_symlink("turn", scratch.path() / "turn");
  EXPECT_THROW(check_result_file(scratch.path() / "turn"), IoError);
}

TEST(ResultFile, SaysBeforehandWhereItCannotWrite) {
  const ScratchDirectory scratch;
  EXPECT_NO_THROW(check_result_file(scratch.path() / "new"));
  EXPECT_FALSE(fs::exists(scratch.path() / "new"));
  EXPECT_THROW(check_result_file(scratch.path()), IoError);
  EXPECT_TRUE(throws<IoError>({"absent/file: cannot be written"},
                              [&] { check_result_file(scratch.path() / "absent/file"); }));
}

// Only root can test the first half, by giving a link to another user.
TEST(ResultFile, LinksAreFollowedThatAreThisUsersAndNoOthers) {
  const ScratchDirectory scratch;
  const fs::path victim = scratch.write("victim", std::string("mine")),
                 link = scratch.path() / "result.json";
  fs::create_symlink(victim, link);
  if (::geteuid() == 0) {
    ASSERT_EQ(::lchown(link.c_str(), 65534, 65534), 0);
    EXPECT_THROW(check_result_file(link), IoError);
    EXPECT_THROW(write_result_file(link, "text"), IoError);
    EXPECT_THROW(descriptor_named(link), IoError);
    EXPECT_EQ(read_text(victim), "mine");
    ASSERT_EQ(::lchown(link.c_str(), 0, 0), 0);
  }
  EXPECT_NO_THROW(check_result_file(link));
  write_result_file(link, "text");
  EXPECT_EQ(read_text(victim), "text");
}

TEST(ResultFile, TheStandardStreamsAreDescriptors) {
  const ScratchDirectory scratch;
  fs::create_symlink("/dev/stdout", scratch.path() / "out");
  EXPECT_EQ(descriptor_named("/dev/stdin"), STDIN_FILENO);
  EXPECT_EQ(descriptor_named("/dev/stdout"), STDOUT_FILENO);
  EXPECT_EQ(descriptor_named("/dev/stderr"), STDERR_FILENO);
  EXPECT_EQ(descriptor_named(scratch.path() / "out"), STDOUT_FILENO);
  EXPECT_EQ(descriptor_named("/dev/null"), std::nullopt);
}

}  // namespace
}  // namespace tutti::keep
