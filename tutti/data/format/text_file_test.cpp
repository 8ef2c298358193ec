#include "tutti/data/format/text_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tutti/data/format/file_checks.h"
#include "tutti/data/format/first_bytes.h"

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
  // Behind what is looked at first, too.
  const std::string many(kFirstBytes, 'a');
  std::istringstream stream(many + "\r\nb");
  EXPECT_EQ(whole_text(stream, "s", "words"), many + "\nb");
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
  EXPECT_NE(why("\xff\xfe\0\0a\0\0\0"sv).find("iconv -f UTF-32"), std::string::npos);
  EXPECT_NE(why("version https://git-lfs.github.com/spec/v1\noid sha256:0\n").find("git lfs pull"),
            std::string::npos);
  EXPECT_NE(why("<!DOCTYPE html><html>").find("a page of the web"), std::string::npos);
  EXPECT_NE(why(std::string(4096, '\0')).find("zeros alone"), std::string::npos);
}

TEST(TextFile, AFolderIsAnErrorWithItsReason) {
  const ScratchDirectory scratch;
  std::ifstream folder(scratch.path());
  expect_io_error([&] { whole_text(folder, "here", "a list"); }, {"here: cannot be read: "});
}

}  // namespace
}  // namespace tutti::data
