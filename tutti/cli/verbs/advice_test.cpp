#include "tutti/cli/verbs/advice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/base/expect_text.h"
#include "tutti/base/json.h"

namespace tutti::cli {
namespace {

BatchAdvice timed(int64_t batch, std::vector<double> steps) {
  std::vector<double> sorted = steps;
  std::ranges::sort(sorted);
  return {.batch = batch, .step_seconds = sorted[sorted.size() / 2], .steps = std::move(steps)};
}

Advice advice_of(std::vector<BatchAdvice> batches) {
  Advice advice{.batches = std::move(batches)};
  choose_batch(advice);
  return advice;
}

TEST(Advice, TheFastestIsCalledSoOnlyWhereIntervalsPart) {
  // 100, 200 and 201 samples/s; the last two cannot be told apart, so the smaller one is enough.
  Advice advice = advice_of({timed(8, {0.080, 0.081, 0.079}), timed(16, {0.080, 0.081, 0.079}),
                             timed(32, {0.159, 0.161, 0.158})});
  EXPECT_EQ(advice.best_batch, 16);
  EXPECT_EQ(advice.as_fast, (std::vector<int64_t>{16, 32}));
  EXPECT_TRUE(has_text(advice_text(advice), "<- as fast as any, as far as these steps tell\n"));
  EXPECT_FALSE(has_text(advice_text(advice), "<- the fastest"));
  EXPECT_EQ(advice_json(advice)["as_fast"].size(), 2u);

  advice = advice_of({timed(8, {0.080, 0.081, 0.079}), timed(16, {0.080, 0.081, 0.079})});
  EXPECT_EQ(advice.best_batch, 16);
  EXPECT_TRUE(has_text(advice_text(advice), "<- the fastest\n"));

  // An outlier by noise: one median happens to be small, and its steps differ.
  advice = advice_of({timed(8, {0.040, 0.080, 0.039}), timed(16, {0.080, 0.081, 0.079})});
  EXPECT_EQ(advice.best_batch, 8);
  EXPECT_EQ(advice.as_fast.size(), 2u);

  // One slow step makes the interval wide, but does not make half the speed equally good.
  advice = advice_of(
      {timed(520, {1.0, 0.994, 1.004, 0.998, 1.002}), timed(1000, {1.0, 0.995, 1.005, 1.0, 12.5})});
  EXPECT_EQ(advice.as_fast, (std::vector<int64_t>{1000}));

  advice = advice_of({timed(8, {0.08}), timed(15, {0.08}), timed(16, {0.08})});  // single steps
  EXPECT_EQ(advice.as_fast, (std::vector<int64_t>{15, 16}));
  EXPECT_EQ(advice_of({{.batch = 8}}).best_batch, 0);  // none fits
}

/// A device refused the largest batch, so that its plan is not known either.
TEST(Advice, ABatchThatADeviceHasNoMemoryForIsTooLarge) {
  Advice advice = advice_of({timed(8, {0.080, 0.081, 0.079}), {.batch = 16}});
  EXPECT_EQ(advice.best_batch, 8);
  EXPECT_TRUE(has_text(advice_text(advice),
                       "      16            -      too large          -            -\n"));
}

TEST(Advice, OtherWorkIsSaidBeforeTheTimes) {
  Advice advice = advice_of({timed(8, {0.080, 0.081, 0.079}), timed(16, {0.080, 0.081, 0.079})});
  advice.machine_use.other_work = 0.4;
  const std::string text = advice_text(advice);
  EXPECT_LT(text.find("Other work took 40 % of the processors: these times say little"),
            text.find("Mini-batch"));
  EXPECT_FALSE(has_text(text, "<- the fastest"));
  EXPECT_EQ(advice_json(advice)["other_work"], 0.4);
}

}  // namespace
}  // namespace tutti::cli
