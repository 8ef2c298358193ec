#include "tutti/study/sweep.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/shell.h"

namespace tutti::study {
namespace {

StudyFlags flags(Mode mode) {
  StudyFlags flags;
  flags.config = "base.toml";
  flags.ranks = {4, 1, 2};
  flags.repeats = 2;
  flags.mode = mode;
  flags.seed = 10;
  flags.cores = 8;
  flags.output_dir = "out";
  return flags;
}

bool sets(const PlannedRun& run, const std::string& setting) {
  for (size_t i = 1; i < run.command.size(); ++i)
    if (run.command[i - 1] == "--set" && run.command[i] == setting) return true;
  return false;
}

TEST(Sweep, RepeatsComeRoundByRoundWithTheSameSeedsAtEveryScale) {
  const auto runs = plan_runs(flags(Mode::weak));
  ASSERT_EQ(runs.size(), 6u);
  EXPECT_EQ(runs[0].ranks, 1);
  EXPECT_EQ(runs[2].ranks, 4);
  EXPECT_EQ(runs[3].repeat, 2);
  EXPECT_EQ(runs[0].seed, 10u);
  EXPECT_EQ(runs[5].seed, 11u);
  EXPECT_EQ(runs[5].directory, "out/runs/n0004-r2");
  for (const PlannedRun& run : runs)
    EXPECT_TRUE(sets(run, "run.threads=2"));  // 8 cores / 4 ranks, at every scale
}

TEST(Sweep, TheCommandLine) {
  StudyFlags given = flags(Mode::weak);
  given.sets = {"optimizer.lr=0.2", "run.output_dir=\"a b\""};
  given.local_batch = 32;
  EXPECT_EQ(shell_line(plan_runs(given)[1].command),
            "tutti train base.toml --ranks 2 --output-dir out/runs/n0002-r1 --set optimizer.lr=0.2 "
            "--set 'run.output_dir=\"a b\"' "
            "--set run.seed=10 --set run.threads=2 --set batch.local=32 --set batch.global=0");
  given.oversubscribe = true;
  EXPECT_EQ(plan_runs(given)[1].command.at(7), "--oversubscribe");
}

TEST(Sweep, WeakFixesTheLocalBatchAndStrongTheGlobal) {
  StudyFlags weak = flags(Mode::weak), strong = flags(Mode::strong);
  weak.local_batch = 32;
  for (const PlannedRun& run : plan_runs(weak)) EXPECT_EQ(run.local_batch, 32);
  weak.local_batch = 0;
  weak.global_batch = 64;
  for (const PlannedRun& run : plan_runs(weak))
    EXPECT_EQ(run.local_batch, 64);  // at the smallest scale, one rank
  strong.global_batch = 64;
  for (const PlannedRun& run : plan_runs(strong)) EXPECT_EQ(run.local_batch * run.ranks, 64);
  strong.global_batch = 0;
  strong.local_batch = 32;
  for (const PlannedRun& run : plan_runs(strong)) EXPECT_EQ(run.local_batch * run.ranks, 32);
  strong.local_batch = 0;
  for (const PlannedRun& run : plan_runs(strong)) EXPECT_EQ(run.local_batch * run.ranks, 128);
}

TEST(Sweep, FixedReplicasKeepTheBatchPerReplicaOnEveryRankCount) {
  StudyFlags fixed = flags(Mode::strong);
  fixed.replicas = 4;
  fixed.global_batch = 64;
  for (const PlannedRun& run : plan_runs(fixed)) EXPECT_EQ(run.local_batch, 16);
  fixed.mode = Mode::weak;
  EXPECT_THROW(plan_runs(fixed), ConfigError);
  fixed.mode = Mode::strong;
  fixed.replicas = 2;
  EXPECT_THROW(plan_runs(fixed), ConfigError);  // fewer than the 4 ranks
}

TEST(Sweep, RanksThatShareSamplesAreASizeOfTheirOwn) {
  StudyFlags given = flags(Mode::weak);
  given.ranks = parse_sizes("4/2x2,2,1,2/2,4/2", {});
  given.repeats = 1;
  given.local_batch = 8;
  const auto runs = plan_runs(given);
  ASSERT_EQ(runs.size(), 5u);
  std::vector<std::string> sizes;
  for (const PlannedRun& run : runs) sizes.push_back(run.size().text());
  EXPECT_EQ(sizes, (std::vector<std::string>{"1", "2", "2/2", "4/2", "4/2x2"}));
  EXPECT_EQ(runs[4].directory, "out/runs/n0004-s2x2-r1");
  EXPECT_TRUE(sets(runs[4], "parallel.spatial=2,2"));
  EXPECT_FALSE(has_text(shell_line(runs[1].command), "spatial"));
  given.mode = Mode::strong;  // a replica is a group of ranks
  for (const PlannedRun& run : plan_runs(given))
    EXPECT_EQ(run.local_batch * run.size().groups(), 8);
  EXPECT_EQ(parse_sizes("2", {2}), (std::vector<Size>{Size(2, {2})}));  // as the configuration says
  EXPECT_EQ(parse_sizes("2/1", {2}), (std::vector<Size>{Size(2)}));
  for (const char* wrong : {"", "2/", "/2", "2/2x", "two", "2/0", "1,,2", "-1", "8/2x2x2",
                            "4/1048576x1048576x1048576x1048576"})
    EXPECT_THROW(parse_sizes(wrong, {}), ConfigError) << wrong;
}

TEST(Sweep, MistakesAreNamed) {
  const auto message = [](StudyFlags given) -> std::string {
    return message_of<ConfigError>([&] { plan_runs(given); });
  };
  StudyFlags given = flags(Mode::strong);
  given.global_batch = 66;
  EXPECT_TRUE(has_text(message(given), "66 is not divisible by 4 ranks"));
  given = flags(Mode::weak);
  given.ranks = {2, 2};
  EXPECT_TRUE(has_text(message(given), "2 twice"));
  given.ranks = {0};
  EXPECT_TRUE(has_text(message(given), "0 is not"));
  given.ranks = {};
  EXPECT_TRUE(has_text(message(given), "--ranks"));
  given.ranks = {Size(3, {2})};
  EXPECT_TRUE(has_text(message(given), "3/2 are no groups of 2"));
  given = flags(Mode::strong);
  given.replicas = 4;
  given.ranks = {Size(1), Size(2, {2})};
  EXPECT_TRUE(has_text(message(given), "leave run.replicas out"));
  given = flags(Mode::weak);
  given.repeats = 0;
  EXPECT_TRUE(has_text(message(given), "--repeats 0"));
  given = flags(Mode::weak);
  given.config.clear();
  EXPECT_TRUE(has_text(message(given), "configuration"));
  EXPECT_THROW(parse_mode("medium"), ConfigError);
  EXPECT_EQ(parse_mode("strong"), Mode::strong);
}

}  // namespace
}  // namespace tutti::study
