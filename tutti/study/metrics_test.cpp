#include "tutti/study/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/study/notes.h"

namespace tutti::study {
namespace {

const trace::Target kTarget{"accuracy", 0.9, true};

/// A run of `epochs` epochs that take `seconds` each, the first 10 s more (start-up), with an
/// evaluation of one second after each; accuracy rises evenly and reaches 0.9 after `to_target`
/// epochs.
RunSummary run_in(int ranks, double seconds, int epochs, int to_target, int repeat = 1) {
  RunSummary run{.log = {}, .repeat = repeat};
  trace::RunStart& start = run.log.start;
  start.model = "resnet20";
  start.dataset = "lattices";
  start.precision = "fp32";
  start.ranks = start.replicas = ranks;
  start.local_batch = 32;
  start.global_batch = 32 * ranks;
  start.train_samples = 3200;
  start.cores_per_host = 4;
  start.hosts = {"h"};
  start.target = kTarget;
  double train = 0;
  for (int e = 1; e <= epochs; ++e) {
    const double taken = seconds + (e == 1 ? 10 : 0);
    train += taken;
    run.log.epochs.push_back(
        {.epoch = e, .step = e * 100 / ranks, .seconds = taken, .samples_per_s = 3200 / taken});
    trace::EvalRecord eval;
    eval.epoch = e;
    eval.accuracy = 0.9 * e / to_target;
    eval.wall_seconds = train + e;
    eval.train_seconds = train;
    run.log.evals.push_back(eval);
  }
  run.log.steps = {{.step = 50, .samples_per_s = 1, .step_ms = 900, .compute_ms = 900},
                   {.step = 100,
                    .samples_per_s = 2,
                    .step_ms = 10,
                    .compute_ms = 7,
                    .comm_exposed_ms = 2,
                    .data_wait_ms = 0.5,
                    .other_ms = 0.5}};
  run.log.stop = trace::RunStop{};
  return run;
}

const ScaleRow& row(const StudyResult& result, int ranks) {
  for (const ScaleRow& row : result.rows)
    if (row.ranks == ranks) return row;
  throw std::runtime_error("no such row");
}

bool has_note(const StudyResult& result, const std::string& text) {
  for (const std::string& note : result.notes)
    if (note.find(text) != std::string::npos) return true;
  return false;
}

TEST(Metrics, OtherWorkIsSaidBeforeTheNumbers) {
  std::vector<RunSummary> runs = {run_in(1, 100, 6, 4), run_in(2, 50, 6, 4),
                                  run_in(2, 50, 6, 4, 2)};
  runs[0].log.machine = {{.seconds = 30, .other_work = 0.05, .steal = 0}};
  runs[1].log.machine = {{.seconds = 30, .other_work = 0.5, .steal = 0.2},
                         {.seconds = 10, .other_work = 0.1, .steal = 0.2},
                         {.seconds = 99}};
  runs[2].log.machine = {{.seconds = 9, .other_work = 0.12, .throttled = 0.7}};
  const StudyResult result = evaluate(runs, std::nullopt);
  EXPECT_EQ(result.disturbances,
            (std::vector<std::string>{
                "Other work took up to 40 % of the processors while 2 of 3 runs trained (2 ranks, "
                "repeat 1: 40 %; 2 ranks, repeat 2: 12 %): these times say little.",
                "The hypervisor kept 20 % of the processors for other machines while 1 of 3 runs "
                "trained (2 ranks, repeat 1: 20 %): these times say little.",
                "The control group's quota of processor time was used up in 70 % of its periods "
                "while 1 of 3 runs trained (2 ranks, repeat 2: 70 %): these times say little."}));
  EXPECT_EQ(all_notes(result).front(), result.disturbances.front());
}

TEST(Metrics, EqualRunsThatTookDifferentTimesAreNamed) {
  const auto message_of = [](std::vector<RunSummary> runs) {
    const std::vector<std::string> all = evaluate(std::move(runs), std::nullopt).disturbances;
    return all.empty() ? "" : all.front();
  };
  EXPECT_TRUE(
      message_of({run_in(1, 16.4, 6, 4), run_in(1, 28.1, 6, 4, 2), run_in(1, 35.6, 6, 4, 3)})
          .starts_with("Equal runs on 1 rank took 16.40, 28.10, 35.60 s an epoch: more than "
                       "chance makes"));
  EXPECT_EQ(message_of({run_in(1, 100, 6, 4), run_in(1, 109, 6, 4, 2), run_in(2, 50, 6, 4)}), "");
  // A single timed epoch each does not show how much epochs differ.
  EXPECT_EQ(message_of({run_in(1, 100, 2, 4), run_in(1, 120, 2, 4, 2)}), "");
  EXPECT_NE(message_of({run_in(1, 100, 2, 4), run_in(1, 160, 2, 4, 2)}), "");
  // They differ by 20 %: more than their own epochs differ, or less.
  std::vector<RunSummary> runs = {run_in(1, 100, 6, 4), run_in(1, 120, 6, 4, 2)};
  EXPECT_NE(message_of(runs), "");
  for (RunSummary& run : runs)
    for (size_t e = 1; e < run.log.epochs.size(); ++e)
      run.log.epochs[e].seconds += e % 2 == 0 ? -30 : e == 3 ? 0 : 30;
  EXPECT_EQ(message_of(runs), "");
}

TEST(Metrics, KnownAnswersWhenTheTargetIsReached) {
  // n=1: 100 s an epoch, 4 epochs: 410 s training + 4 evaluations = 414 s. n=4: 30 s, 5 epochs: 160
  // + 5 = 165 s.
  const StudyResult result = evaluate({run_in(4, 30, 6, 5), run_in(1, 100, 6, 4)}, std::nullopt);
  EXPECT_EQ(result.base_ranks, 1);
  EXPECT_EQ(result.mode, "weak");
  EXPECT_EQ(result.title, "resnet20 on lattices, fp32");
  ASSERT_TRUE(result.target);
  const ScaleRow &one = row(result, 1), &four = row(result, 4);
  EXPECT_EQ(one.parallel.value, 1);
  EXPECT_EQ(one.learning.value, 1);
  EXPECT_DOUBLE_EQ(four.epoch_seconds.mean, 30);  // the first epoch's 40 s are left out
  EXPECT_DOUBLE_EQ(four.samples_per_s.mean, 3200 / 30.0);
  EXPECT_DOUBLE_EQ(four.parallel.value, 100 / 30.0);
  EXPECT_DOUBLE_EQ(four.parallel_efficiency, 100 / 30.0 / 4);
  EXPECT_DOUBLE_EQ(four.reach_seconds.mean, 165);
  EXPECT_DOUBLE_EQ(four.epochs_to_target.mean, 5);
  EXPECT_DOUBLE_EQ(four.learning.value, 414.0 / 165);
  EXPECT_DOUBLE_EQ(four.learning_efficiency, 414.0 / 165 / 4);
  EXPECT_DOUBLE_EQ(four.epochs_factor, 0.8);
  EXPECT_EQ(four.reached, 1);
  EXPECT_FALSE(four.oversubscribed);
}

TEST(Metrics, TheIdentityHoldsWithItsRemainder) {
  const StudyResult result = evaluate({run_in(4, 30, 6, 5), run_in(1, 100, 6, 4)}, std::nullopt);
  const ScaleRow& four = row(result, 4);
  EXPECT_NEAR(four.learning.value, four.parallel.value * four.epochs_factor * four.remainder,
              1e-12);
  EXPECT_NEAR(four.remainder, (414.0 / 165) / (100 / 30.0 * 0.8), 1e-12);
  // Without start-up and evaluation the epoch time is constant and the remainder is 1.
  std::vector<RunSummary> runs = {run_in(1, 100, 6, 4), run_in(4, 30, 6, 5)};
  for (RunSummary& run : runs)
    for (trace::EvalRecord& eval : run.log.evals)
      eval.wall_seconds = eval.epoch * run.log.epochs[1].seconds;
  EXPECT_NEAR(row(evaluate(runs, std::nullopt), 4).remainder, 1, 1e-12);
}

TEST(Metrics, NotReachedIsSaidAndNotExtrapolated) {
  const StudyResult result = evaluate({run_in(1, 100, 6, 4), run_in(4, 30, 6, 60)}, std::nullopt);
  const ScaleRow& four = row(result, 4);
  EXPECT_EQ(four.reached, 0);
  EXPECT_TRUE(std::isnan(four.learning.value));
  EXPECT_TRUE(std::isnan(four.reach_seconds.mean));
  EXPECT_DOUBLE_EQ(four.parallel.value, 100 / 30.0);
  EXPECT_TRUE(
      has_note(result, "On 4 ranks, no run reached test accuracy 0.9 (the best run: 0.09)"));
  // The rate form is still available: epochs 1 to 6. n=1: 0.225*5 in 505 s; n=4: 0.015*5 in 155 s.
  EXPECT_NEAR(four.rate, (0.015 * 5 / 155) / (0.225 * 5 / 505), 1e-12);
  EXPECT_DOUBLE_EQ(row(result, 1).rate, 1);
}

TEST(Metrics, TheBaseNotReachingLeavesNoLearningSpeedUpAnywhere) {
  const StudyResult result = evaluate({run_in(1, 100, 6, 60), run_in(4, 30, 6, 5)}, std::nullopt);
  EXPECT_EQ(row(result, 4).reached, 1);
  EXPECT_TRUE(std::isnan(row(result, 4).learning.value));
  EXPECT_TRUE(std::isnan(row(result, 1).learning.value));
  EXPECT_TRUE(row(result, 4).learning_runs.empty());
}

TEST(Metrics, RepeatsGiveMeansRangesAndIntervals) {
  const StudyResult result = evaluate({run_in(1, 99, 6, 4, 1), run_in(1, 101, 6, 4, 2),
                                       run_in(2, 49, 6, 4, 1), run_in(2, 51, 6, 4, 2)},
                                      std::nullopt);
  const ScaleRow& two = row(result, 2);
  EXPECT_EQ(two.runs, 2);
  EXPECT_DOUBLE_EQ(two.epoch_seconds.mean, 50);
  EXPECT_EQ(two.epoch_seconds.low, 49);
  EXPECT_EQ(two.epoch_seconds.high, 51);
  EXPECT_DOUBLE_EQ(two.epoch_seconds.stdev, std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(two.parallel.value, 2);
  EXPECT_LT(two.parallel.low, 2);
  EXPECT_GT(two.parallel.high, 2);
  EXPECT_TRUE(std::isnan(row(result, 1).parallel.low));
  ASSERT_EQ(two.parallel_runs.size(), 2u);
  EXPECT_DOUBLE_EQ(two.parallel_runs[0], 100.0 / 49);
  EXPECT_FALSE(has_note(result, "single run"));
}

TEST(Metrics, SomeRepeatsNotReachingAreCounted) {
  const StudyResult result =
      evaluate({run_in(1, 100, 6, 4, 1), run_in(1, 100, 6, 40, 2)}, std::nullopt);
  EXPECT_EQ(row(result, 1).reached, 1);
  EXPECT_TRUE(has_note(result, "only 1 of 2 runs reached"));
}

TEST(Metrics, OversubscriptionIsSeenFromTheCores) {
  const StudyResult result = evaluate({run_in(1, 100, 6, 4), run_in(8, 30, 6, 5)}, std::nullopt);
  EXPECT_TRUE(row(result, 8).oversubscribed);
  EXPECT_FALSE(row(result, 1).oversubscribed);
  EXPECT_TRUE(
      has_note(result, "more threads than cores (oversubscribed) on these numbers of ranks: 8."));
  RunSummary spread_out = run_in(8, 30, 6, 5);
  spread_out.log.start.hosts = {"a", "b"};
  EXPECT_FALSE(row(evaluate({spread_out}, std::nullopt), 8).oversubscribed);
}

TEST(Metrics, FailedRunsEnterNoNumberAndAreNamed) {
  RunSummary failed = run_in(1, 7, 6, 4);
  failed.failure = "exit code 1";
  const StudyResult result =
      evaluate({failed, run_in(2, 50, 6, 4), run_in(4, 25, 6, 4)}, std::nullopt);
  EXPECT_EQ(result.base_ranks, 2);
  EXPECT_EQ(row(result, 1).failed, 1);
  EXPECT_EQ(row(result, 1).runs, 0);
  EXPECT_TRUE(std::isnan(row(result, 1).parallel.value));
  EXPECT_TRUE(std::isnan(row(result, 1).learning.value));
  EXPECT_TRUE(std::isnan(row(result, 1).parallel_efficiency));
  EXPECT_EQ(result.mode, "weak");
  EXPECT_DOUBLE_EQ(row(result, 4).parallel.value, 4);  // 50 / 25 * n0
  EXPECT_TRUE(
      has_note(result, "The run on 1 rank, repeat 1, failed and enters no number: exit code 1"));
  EXPECT_TRUE(has_note(result, "The smallest size has 2 ranks"));
  EXPECT_EQ(evaluate({failed}, std::nullopt).base_ranks, 0);
}

TEST(Metrics, StoppedRunsEnterNoNumberAndHaveNotFailed) {
  RunSummary stopped = run_in(1, 7, 6, 4);
  stopped.failure = "stopped early, with a checkpoint";
  stopped.stopped = true;
  const StudyResult result = evaluate({stopped, run_in(2, 50, 6, 4)}, std::nullopt);
  EXPECT_EQ(row(result, 1).failed, 0);
  EXPECT_EQ(row(result, 1).stopped, 1);
  EXPECT_EQ(row(result, 1).runs, 0);
  EXPECT_TRUE(has_note(result, "repeat 1, enters no number: stopped early, with a checkpoint"));
}

TEST(Metrics, ATargetChosenAfterwardsIsLookedUpAmongTheEvaluations) {
  RunSummary run = run_in(1, 100, 6, 4);
  run.log.target_reached =
      trace::TargetReached{.epoch = 3.5, .wall_seconds = 1234};  // another target's
  EXPECT_EQ(row(evaluate({run}, std::nullopt), 1).reach_seconds.mean, 414);
  const trace::Target lower{"accuracy", 0.4, true};
  EXPECT_EQ(row(evaluate({run}, lower), 1).reach_seconds.mean,
            212);  // epoch 2: 210 s + 2 evaluations
}

TEST(Metrics, ARunThatEndedAtItsOwnTargetHasNotMissedAHigherOne) {
  RunSummary ended = run_in(1, 100, 4, 4);
  ended.log.target_reached = trace::TargetReached{.epoch = 4, .wall_seconds = 414, .value = 0.9};
  const StudyResult result =
      evaluate({ended, run_in(2, 50, 6, 40)}, trace::Target{"accuracy", 0.95, true});
  EXPECT_TRUE(result.runs[0].cut_off);
  EXPECT_EQ(row(result, 1).missed(), 0);
  EXPECT_EQ(row(result, 2).missed(), 1);
  EXPECT_TRUE(has_note(result,
                       "On 1 rank, 1 run of 1 had another target and ended there. That "
                       "says nothing about test accuracy ≥ 0.95."));
  EXPECT_FALSE(has_note(result, "On 1 rank, no run reached"));
  EXPECT_FALSE(evaluate({ended}, std::nullopt).runs[0].cut_off);
}

TEST(Metrics, ARunThatWentOnBeyondItsFirstTargetHasMissedAHigherOne) {
  const trace::Target high{"accuracy", 0.95, true};
  RunSummary went_on = run_in(1, 100, 4, 4);
  for (trace::EvalRecord& eval : went_on.log.evals)
    eval.step = static_cast<int64_t>(100 * eval.epoch);
  went_on.log.target_reached = trace::TargetReached{.epoch = 2, .step = 200, .value = 0.45};
  EXPECT_EQ(row(evaluate({went_on}, high), 1).missed(), 1);
  // Nothing to do: it had trained to its last step when the higher target was asked for.
  RunSummary at_its_end = went_on;
  at_its_end.log.target_reached->step = 400;
  EXPECT_EQ(row(evaluate({at_its_end}, high), 1).cut_off, 1);
  at_its_end.log.stop->status = trace::RunStatus::target_missed;
  EXPECT_EQ(row(evaluate({at_its_end}, high), 1).missed(), 1);
}

TEST(Metrics, ALowerIsBetterMetricTurnsTheDirection) {
  std::vector<RunSummary> runs = {run_in(1, 100, 6, 4), run_in(2, 50, 6, 4)};
  const trace::Target mae{"mae", 0.3, false};
  for (RunSummary& run : runs)
    for (trace::EvalRecord& eval : run.log.evals) eval.metrics["mae"] = 1.0 / eval.epoch;
  const StudyResult result = evaluate(runs, mae);
  EXPECT_EQ(row(result, 2).epochs_to_target.mean, 4);
  EXPECT_DOUBLE_EQ(row(result, 2).best.mean, 1.0 / 6);
  EXPECT_NEAR(row(result, 2).rate, 505.0 / 255, 1e-12);
}

TEST(Metrics, StepPartsLeaveOutTheFirstLineAndFallBackToEpochs) {
  RunSummary run = run_in(1, 100, 6, 4);
  const StepParts parts = row(evaluate({run}, std::nullopt), 1).step;
  EXPECT_EQ(parts.total, 10);
  EXPECT_EQ(parts.compute, 7);
  EXPECT_EQ(parts.comm_exposed, 2);
  run.log.steps.clear();
  EXPECT_DOUBLE_EQ(row(evaluate({run}, std::nullopt), 1).step.total, 1000);  // 100 s for 100 steps
}

TEST(Metrics, AFirstEpochCountsOnlyWhereNoRunHasAnother) {
  const StudyResult mixed =
      evaluate({run_in(1, 100, 6, 4, 1), run_in(1, 80, 1, 4, 2)}, std::nullopt);
  EXPECT_DOUBLE_EQ(row(mixed, 1).epoch_seconds.mean, 100);
  EXPECT_EQ(row(mixed, 1).epoch_seconds.count, 1);
  EXPECT_DOUBLE_EQ(row(mixed, 1).samples_per_s.mean, 32);
  EXPECT_EQ(row(mixed, 1).parallel_runs, std::vector<double>{1});
  EXPECT_TRUE(has_note(mixed, "On 1 rank, 1 of 2 runs measured its first epoch only."));
  const StudyResult first = evaluate({run_in(1, 80, 1, 4), run_in(2, 50, 6, 4)}, std::nullopt);
  EXPECT_DOUBLE_EQ(row(first, 1).epoch_seconds.mean, 90);
  EXPECT_TRUE(has_note(first, "the runs measured their first epoch only: 1. Its time holds"));
}

TEST(Metrics, WithoutAWholeEpochThroughputStandsInAndIsSaid) {
  std::vector<RunSummary> runs = {run_in(1, 100, 6, 4), run_in(2, 50, 6, 4)};
  runs[1].log.steps[1].samples_per_s = 48;
  for (RunSummary& run : runs)
    for (trace::EpochRecord& epoch : run.log.epochs) epoch.partial = true;
  runs[0].log.steps[1].samples_per_s = 30;
  const StudyResult result = evaluate(runs, std::nullopt);
  EXPECT_DOUBLE_EQ(row(result, 2).parallel.value, 1.6);
  EXPECT_TRUE(has_note(result, "ratio of samples/s"));
}

TEST(Metrics, RunsThatAreNotAlikeAreNamed) {
  std::vector<RunSummary> runs = {run_in(1, 100, 6, 4), run_in(2, 50, 6, 4)};
  runs[1].log.start.threads_per_rank = 2;
  runs[1].log.start.local_batch = 99;
  const StudyResult result = evaluate(runs, std::nullopt);
  EXPECT_TRUE(has_note(result, "threads per rank: 1; 2"));
  EXPECT_EQ(result.mode, "mixed");
  runs[1].log.start.local_batch = 16;
  runs[1].log.start.global_batch = 32;
  EXPECT_EQ(evaluate(runs, std::nullopt).mode, "strong");
}

/// The same run as a regression without a target: its error falls evenly, from 0.9 on.
RunSummary regression(int ranks, double seconds) {
  RunSummary run = run_in(ranks, seconds, 4, 4);
  run.log.start.target.reset();
  run.log.start.metric = "mae";
  run.log.start.higher_is_better = false;
  for (trace::EvalRecord& eval : run.log.evals) {
    eval.metrics["mae"] = 1 - 0.1 * eval.epoch;
    eval.accuracy = trace::kNotMeasured;
  }
  return run;
}

TEST(Metrics, WithoutATargetTheRunsMetricAndItsDirectionCount) {
  const StudyResult result = evaluate({regression(1, 100), regression(2, 50)}, std::nullopt);
  EXPECT_EQ(result.measure.metric, "mae");
  EXPECT_FALSE(result.measure.higher_is_better);
  EXPECT_NEAR(row(result, 1).best.mean, 0.6, 1e-12);
  EXPECT_EQ(row(result, 1).quality.size(), 4u);
  EXPECT_GT(row(result, 2).rate, 1.5);  // errors that fall are progress
}

TEST(Metrics, RecordsThatNameNoMetricAreComparedByTheirTargetsOrTheAccuracy) {
  RunSummary old = run_in(1, 100, 4, 4);
  EXPECT_EQ(evaluate({old}, std::nullopt).measure.metric, "accuracy");
  old.log.start.target = trace::Target{"mae", 0.1, false};
  EXPECT_FALSE(evaluate({old}, std::nullopt).measure.higher_is_better);
  old.log.start.target.reset();
  EXPECT_NEAR(row(evaluate({old}, std::nullopt), 1).best.mean, 0.9, 1e-12);
}

}  // namespace
}  // namespace tutti::study
