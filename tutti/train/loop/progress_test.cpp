#include "tutti/train/loop/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "tutti/base/expect_text.h"
#include "tutti/base/log.h"

namespace tutti::train {
namespace {

ProgressState half_way() {
  return {.elapsed_s = 100,
          .first_step = 100,
          .step = 200,
          .steps = 400,
          .epoch = 12,
          .epochs = 24,
          .loss = 0.51234,
          .quality = "accuracy 87.50 %",
          .learning_rate = 0.3,
          .samples_per_s = 1234,
          .step_ms = 103.7,
          .exposed_communication_ms = 1.25,
          .input_stall_ms = 0.5};
}

/// Captures a display's output in its own file.
class Screen {
 public:
  explicit Screen(bool terminal)
      : settings_{.terminal = terminal, .columns = 100, .out = file_.get()} {}
  ProgressDisplay::Settings settings() const { return settings_; }
  std::string text() const {
    std::rewind(file_.get());
    std::string text(10000, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_.get()));
    return text;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_{std::tmpfile()};
  ProgressDisplay::Settings settings_;
};

TEST(Progress, SaysHowManyCoresWouldKeepUp) {
  EXPECT_EQ(waiting_line({.seconds = 10, .waited = 0.19, .reading = 30}), "");
  EXPECT_EQ(waiting_line({.seconds = 0.9, .waited = 0.8, .reading = 30}), "");  // too short
  EXPECT_EQ(waiting_line({.seconds = 200, .waited = 3, .reading = 30}), "");    // 1.5 %
  EXPECT_EQ(waiting_line({.seconds = 10, .waited = 6, .reading = 9.5}),
            "waited 60 % of the epoch for data: reading took 9.5 s of a core, steps 4.0 s; "
            "free cores a rank needs: 3");
}

}  // namespace

TEST(Progress, ALineFitsAHundredColumns) {
  EXPECT_EQ(progress_line(half_way()),
            "epoch 12/24 step 200/400 loss 0.5123 lr 0.3 1234 samples/s 3:20 left");
  ProgressState waiting = half_way();
  waiting.exposed_communication_ms = 12.4;
  waiting.input_stall_ms = 3.1;
  EXPECT_TRUE(progress_line(waiting).ends_with("left comm 12 % data 3 %"))
      << progress_line(waiting);
  ProgressState large = waiting;
  large.elapsed_s = 36000;
  large.step = 60000, large.steps = 64000, large.epoch = 164, large.epochs = 240;
  large.learning_rate = 0.0003;
  large.input_stall_ms = 0;
  EXPECT_LE(progress_line(large).size(), 91u) << progress_line(large);
}

TEST(Progress, RemainingTimeCountsFromTheResume) {
  EXPECT_DOUBLE_EQ(*remaining_s(half_way()), 200);
  ProgressState start = half_way();
  start.step = start.first_step;
  EXPECT_FALSE(remaining_s(start).has_value());
  EXPECT_FALSE(has_text(progress_line(start), "left"));
}

TEST(Progress, Durations) {
  EXPECT_EQ(duration_text(0.4), "0 s");
  EXPECT_EQ(duration_text(59.7), "1:00");
  EXPECT_EQ(duration_text(271), "4:31");
  EXPECT_EQ(duration_text(3723), "1:02:03");
}

TEST(Progress, BarFitsTheTerminal) {
  const std::string wide = progress_bar(half_way(), 140);
  EXPECT_EQ(wide.substr(0, 6), " 50% [");
  for (const char* piece : {"3:20 left", "epoch 12/24", "loss 0.5123", "accuracy 87.50 %",
                            "1234 samples/s", "step 200/400", "lr 0.3"})
    EXPECT_TRUE(has_text(wide, piece)) << piece;
  ProgressState stage = half_way();  // another rank has the loss
  stage.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(has_text(progress_bar(stage, 140), "loss"));
  EXPECT_EQ(progress_bar(half_way(), 40), " 50% [###########...........]  3:20 left");
  for (const int columns : {0, 3, 20, 40, 79})
    EXPECT_LE(progress_bar(half_way(), columns).size(), static_cast<size_t>(columns));
  ProgressState done = half_way();
  done.step = done.steps;
  EXPECT_EQ(progress_bar(done, 140).substr(0, 5), "100% ");
}

TEST(Progress, TerminalGetsABarOthersGetLines) {
  Screen terminal(true), pipe(false);
  testing::internal::CaptureStderr();
  {
    ProgressDisplay bar(terminal.settings()), lines(pipe.settings());
    for (ProgressDisplay* display : {&bar, &lines}) {
      display->step(half_way());
      display->report(half_way());
    }
    bar.step(half_way());  // too early to redraw
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("step 200/400"),
            log.rfind("step 200/400"));  // one line, from the display without a terminal
  EXPECT_TRUE(has_text(log, "step 200/400"));
  EXPECT_EQ(pipe.text(), "");
  const std::string drawn = terminal.text();
  EXPECT_EQ(std::ranges::count(drawn, '\r'), 1);
  EXPECT_TRUE(drawn.ends_with("\x1b[2K"));  // the bar is removed
}

TEST(Progress, NotesAreKeptAndQuietIsQuiet) {
  Screen terminal(true);
  testing::internal::CaptureStderr();
  ProgressDisplay bar(terminal.settings());
  bar.note("test accuracy 0.9");
  log::configure(log::Level::warn, 0, 1);
  bar.note("not this");
  bar.step(half_way());
  log::configure(log::Level::info, 0, 1);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has_text(log, "test accuracy 0.9"));
  EXPECT_FALSE(has_text(log, "not this"));
  EXPECT_EQ(terminal.text(), "");
}

}  // namespace tutti::train
