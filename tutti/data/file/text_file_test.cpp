#include "tutti/data/file/text_file.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <streambuf>

#include "tutti/base/expect_text.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/file_checks.h"

namespace tutti::data {
namespace {

using namespace std::string_view_literals;

TEST(TextFile, MarksAndReturnsOfWindowsAreNoPartOfALine) {
  EXPECT_EQ(plain_lines("\xef\xbb\xbf"
                        "a\r\nb\r\n"),
            "a\nb\n");
  EXPECT_EQ(plain_lines("a\rb\n\r"), "a\rb\n\r");
  EXPECT_EQ(plain_lines("\r\n\r\n"), "\n\n");
  EXPECT_EQ(plain_lines(""), "");
  // Also after the bytes that are looked at first.
  const std::string many(kFirstBytes, 'a');
  std::istringstream stream(many + "\r\nb");
  EXPECT_EQ(whole_text(stream, "s", {.expected = "words"}), many + "\nb");
}

TEST(TextFile, WhatIsNoTextIsNamedWithWhatToDo) {
  const auto why = [](std::string_view text) { return why_no_text(text, "list", "a list"); };
  EXPECT_EQ(why(""), "");
  EXPECT_EQ(why("a b\n"), "");
  EXPECT_EQ(why("[data]\nname = 1\n"), "");
  EXPECT_EQ(why("\xff\xfe"
                "a\0b\0"sv),
            "list: expected a list, found text as UTF-16: convert it with 'iconv -f UTF-16 -t "
            "UTF-8 FILE > NEW'");
  EXPECT_TRUE(has_text(why("\xff\xfe\0\0a\0\0\0"sv), "iconv -f UTF-32"));
  EXPECT_TRUE(
      has_text(why("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "git lfs pull"));
  EXPECT_TRUE(has_text(why("<!DOCTYPE html><html>"), "a page of the web"));
  EXPECT_TRUE(has_text(why(std::string(4096, '\0')), "zeros alone"));
}

TEST(TextFile, AFolderIsAnErrorWithItsReason) {
  const ScratchDirectory scratch;
  std::ifstream folder(scratch.path());
  expect_io_error([&] { whole_text(folder, "here", {.expected = "a list"}); },
                  {"here: cannot be read: "});
}

/// Yields the letter 'a' for ever, or until the disk fails.
class Letters : public std::streambuf {
 public:
  explicit Letters(int pieces) : left_(pieces) {}

 private:
  int_type underflow() override {
    if (left_-- == 0) throw std::ios_base::failure("the disk fails");
    piece_.fill('a');
    setg(piece_.data(), piece_.data(), piece_.data() + piece_.size());
    return traits_type::to_int_type('a');
  }

  std::array<char, 1000> piece_{};
  int left_;
};

TEST(TextFile, WhatHasNoEndOrFailsIsAnErrorThatNamesIt) {
  Letters all(-1), some(5);
  std::istream endless(&all), broken(&some);
  expect_io_error([&] { whole_text(endless, "pipe", {.expected = "a list", .most = 100'000}); },
                  {"pipe: expected a list, found more than 100000 bytes"});
  expect_io_error([&] { whole_text(broken, "file", {.expected = "a list"}); },
                  {"file: cannot be read: "});
}

TEST(TextFile, AFileIsReadByItsPath) {
  const ScratchDirectory scratch;
  const std::string many(200'000, 'b');
  const auto path = scratch.write("list", "\xef\xbb\xbf" + many + "\r\nc");
  EXPECT_EQ(read_small_text(path, {.expected = "a list"}), many + "\nc");
  EXPECT_EQ(read_small_text(scratch.write("empty", std::string()), {.expected = "a list"}), "");
  errno = 0;
  EXPECT_FALSE(read_small_text(scratch.path() / "absent", {.expected = "a list"}).has_value());
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace tutti::data
