#include "tutti/base/shell.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace tutti {
namespace {

std::string printed_by_shell(const std::string& line) {
  FILE* pipe = popen(line.c_str(), "r");
  std::string text;
  std::array<char, 256> bytes;
  while (const size_t count = fread(bytes.data(), 1, bytes.size(), pipe))
    text.append(bytes.data(), count);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

TEST(Shell, PlainWordsStayAsTheyAre) {
  EXPECT_EQ(shell_line({"tutti", "train", "runs/a-1_b.toml", "--set", "optimizer.lr=0.2"}),
            "tutti train runs/a-1_b.toml --set optimizer.lr=0.2");
  EXPECT_EQ(shell_line({"it's", ""}), "'it'\\''s' ''");
}

TEST(Shell, AShellReadsEveryWordBack) {
  std::vector<std::string> command = {"printf", "%s\\n"};
  std::string expected;
  for (const char* word : {"", "a b", "~", "#x", "`id`", "$HOME", "a\tb", "it's", "'", "*", "a\nb",
                           "\\", "\"", "!", "{a,b}", "a;b", "\u00e9"}) {
    command.push_back(word);
    expected += word + std::string("\n");
  }
  EXPECT_EQ(printed_by_shell(shell_line(command)), expected);
}

}  // namespace
}  // namespace tutti
