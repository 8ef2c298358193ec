#include "tutti/base/small_text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::string content(std::ifstream file) {
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string refusal_of_text(const fs::path& path, const SmallText& terms) {
  return message_of<IoError>("", [&] { open_small_text(path, terms); });
}

TEST(SmallText, AFileIsOpenedAndOneThatIsNotThereIsNot) {
  const ScratchDirectory scratch;
  EXPECT_EQ(content(open_small_text(scratch.write("list", "a\r\n"), {.expected = "a list"})),
            "a\r\n");
  errno = 0;
  EXPECT_FALSE(open_small_text(scratch.path() / "absent", {.expected = "a list"}).is_open());
  EXPECT_EQ(errno, ENOENT);
}

TEST(SmallText, APipeWithANameIsNotWaitedFor) {
  const ScratchDirectory scratch;
  const fs::path pipe = scratch.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(
      refusal_of_text(pipe, {.expected = "a list"}),
      pipe.string() + ": expected a list, found a pipe (FIFO): give the path of a regular file");
  EXPECT_TRUE(has_text(refusal_of_text(scratch.path(), {.expected = "a list", .any_kind = true}),
                       "found a folder"));
  EXPECT_THROW(expect_regular_file(pipe), IoError);
  EXPECT_NO_THROW(expect_regular_file(scratch.path() / "absent"));
  EXPECT_TRUE(open_small_text("/dev/null", {.expected = "a list", .any_kind = true}).is_open());
}

TEST(SmallText, APipeOfAShellIsRead) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "text", 4), 4);
  ::close(ends[1]);
  EXPECT_NO_THROW(expect_regular_file(fmt::format("/dev/fd/{}", ends[0])));
  EXPECT_EQ(content(open_small_text(fmt::format("/dev/fd/{}", ends[0]), {.expected = "a list"})),
            "text");
  ::close(ends[0]);
}

TEST(SmallText, AFileWithoutEndIsNotRead) {
  const ScratchDirectory scratch;
  const fs::path sparse = scratch.write("sparse", std::string("x"));
  ASSERT_EQ(::truncate(sparse.c_str(), off_t{1} << 40), 0);
  const std::string message = refusal_of_text(sparse, {.expected = "a list"});
  EXPECT_TRUE(has_text(message, "expected a list, found 1099511627776 bytes"));
}

}  // namespace
}  // namespace tutti
