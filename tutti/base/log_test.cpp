#include "tutti/base/log.h"

#include <gtest/gtest.h>

#include "tutti/base/expect_text.h"

namespace tutti::log {
namespace {

constexpr int64_t kNow = 1700000000;
constexpr size_t kTime = 9;  // "HH:MM:SS ", in any time zone

std::string text_of(Level level, std::string_view text, const Style& style = {}) {
  return line_text(level, text, kNow, style).substr(kTime);
}

}  // namespace

TEST(Log, ALineBeginsWithTheTimeAndWarningsSayWhatTheyAre) {
  const std::string line = line_text(Level::info, "12 steps", kNow, {});
  EXPECT_EQ(line[2], ':');
  EXPECT_EQ(line[5], ':');
  EXPECT_EQ(line.substr(kTime), "12 steps\n");
  EXPECT_EQ(text_of(Level::warn, "slow"), "warning: slow\n");
  EXPECT_EQ(text_of(Level::error, "gone"), "error: gone\n");
}

TEST(Log, OtherRanksSayWhoTheyAre) {
  configure(Level::info, 2, 4);
  EXPECT_EQ(text_of(Level::warn, "slow"), "rank 2/4: warning: slow\n");
  configure(Level::info, 0, 4);
  EXPECT_EQ(text_of(Level::warn, "slow"), "warning: slow\n");
  configure(Level::info, 0, 1);
}

TEST(Log, WhatAllRanksFindAlikeIsSaidByTheFirst) {
  const auto logged_by = [](int rank) {
    configure(Level::info, rank, 4);
    testing::internal::CaptureStderr();
    warn_once("the schedule is {}", "longer");
    configure(Level::info, 0, 1);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_TRUE(has_text(logged_by(0), "warning: the schedule is longer\n"));
  EXPECT_EQ(logged_by(1), "");
}

TEST(Log, ColorOnlyWhereItIsAskedFor) {
  EXPECT_EQ(text_of(Level::warn, "slow", {.color = true}), "\x1b[1;33mwarning: slow\x1b[0m\n");
  EXPECT_EQ(text_of(Level::info, "fine", {.color = true}), "fine\n");
  EXPECT_EQ(text_of(Level::warn, "a\x1b[2Jb", {.color = true}),
            "\x1b[1;33mwarning: a\\x1b[2Jb\x1b[0m\n")
      << "whatever stands in a name is shown";
}

TEST(Log, LongLinesAreWrappedBetweenWordsOnATerminal) {
  const std::string words = "one two three four five six seven eight nine ten eleven";
  EXPECT_EQ(text_of(Level::info, words, {.columns = 40}),
            "one two three four five six\n"
            "         seven eight nine ten\n"
            "         eleven\n");
  EXPECT_EQ(text_of(Level::info, words), words + "\n");
  const std::string path(200, 'x');
  EXPECT_EQ(text_of(Level::info, "see " + path, {.columns = 40}), "see\n         " + path + "\n");
}

TEST(Log, CommandsAreNeverWrapped) {
  configure(Level::info, 0, 1);
  set_style({.columns = 40});
  testing::internal::CaptureStderr();
  command("evaluate: {}", "tutti eval runs/0001/config.toml --weights runs/0001");
  const std::string log = testing::internal::GetCapturedStderr();
  set_style({});
  EXPECT_TRUE(has_text(log, "evaluate: tutti eval runs/0001/config.toml --weights runs/0001\n"));
}

TEST(Log, TheDateStandsOnceBeforeTheFirstLine) {
  configure(Level::info, 0, 1);
  testing::internal::CaptureStderr();
  info("first");
  info("second");
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t first = log.find(" first\n"), date = log.find('-');
  EXPECT_TRUE(date == std::string::npos || date < first) << log;  // another test may have logged
  EXPECT_EQ(log.find('-', first), std::string::npos) << log;
}

}  // namespace tutti::log
