#include "tutti/study/run_watch.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tutti/base/scratch_directory.h"

namespace tutti::study {
namespace {

TEST(RunWatch, ARecordIsFollowedWhileItGrows) {
  const ScratchDirectory scratch;
  const auto path = scratch.path() / "record.jsonl";
  RecordTail tail(path.string());
  tail.read();
  EXPECT_EQ(tail.text(5), "starting");
  std::ofstream file(path);
  file << R"({"event":"step","epoch":2,"step":7})" << '\n'
       << R"({"event":"eval","epo)" << std::flush;
  tail.read();
  EXPECT_EQ(tail.text(5), "epoch 2 of 5");
  file << R"(ch":2,"accuracy":0.625})" << '\n' << "nonsense\n" << std::flush;
  tail.read();
  EXPECT_EQ(tail.text(0), "epoch 2, test accuracy 0.625");
}

TEST(RunWatch, ARunIsFollowedByItsOwnMetric) {
  const ScratchDirectory scratch;
  const auto path = scratch.path() / "record.jsonl";
  std::ofstream(path)
      << R"({"event":"run_start","metric":"mae","higher_is_better":false,"validation_samples":8})"
      << '\n'
      << R"({"event":"eval","epoch":1,"accuracy":null,"loss":2.0,"metrics":{"mae":0.25}})" << '\n';
  RecordTail tail(path.string());
  tail.read();
  EXPECT_EQ(tail.text(3), "epoch 1 of 3, validation mae 0.25");
}

TEST(RunWatch, WithoutATargetTheBestIsOfTheRunsMetric) {
  trace::RunLog log;
  log.start.metric = "mae";
  log.start.higher_is_better = false;
  for (const double mae : {0.5, 0.25, 0.75}) {
    trace::EvalRecord eval;
    eval.epoch = static_cast<double>(log.evals.size()) + 1;
    eval.metrics["mae"] = mae;
    log.evals.push_back(eval);
  }
  EXPECT_EQ(result_text(log, std::nullopt), "best test mae 0.25 in 3 epochs");
}

std::string shown_by(const StudyDisplay::Settings& given, int updates) {
  std::FILE* file = std::tmpfile();
  StudyDisplay::Settings settings = given;
  settings.out = file;
  PlannedRun one, two;
  two.ranks = 16;
  StudyDisplay display(settings, {one, two});
  for (int i = 0; i < updates; ++i) display.update(0, "epoch " + std::to_string(i));
  display.finish(0, "done");
  std::rewind(file);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST(RunWatch, WithoutATerminalALineIsPrintedWhenTheRunHasEnded) {
  EXPECT_EQ(shown_by({}, 3), "run 1 of 2    1 rank  repeat 1  done\n");
  EXPECT_EQ(shown_by({.quiet = true}, 3), "");
}

TEST(RunWatch, OnATerminalTheLineIsUpdatedInPlaceAndFits) {
  EXPECT_EQ(shown_by({.columns = 40}, 2),
            "\r\033[Krun 1 of 2    1 rank  repeat 1  epoch 0"
            "\r\033[Krun 1 of 2    1 rank  repeat 1  epoch 1"
            "\r\033[Krun 1 of 2    1 rank  repeat 1  done\n");
  EXPECT_TRUE(shown_by({.columns = 11}, 1).starts_with("\r\033[Krun 1 of 2\r\033[K"));
}

}  // namespace
}  // namespace tutti::study
