#include "tutti/cli/job/job_end.h"

#include <gtest/gtest.h>

#include <functional>

#include "tutti/base/expect_text.h"
#include "tutti/cli/job/supervised_job.h"

namespace tutti::cli {
namespace {

constexpr int exited(int code) { return code << 8; }  // as in waitpid's status

void be_rank(const RankTable& table, const own_row::Place& place,
             const std::function<void()>& work) {
  status_of(start_rank(table, place.rank, work, place.ranks_here));
}

Ended report_of(const RankTable& table, const JobEnd& end) {
  testing::internal::CaptureStderr();
  const int code = explain_end(table, end);
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(JobEnd, RanksOfOtherHostsCountThroughTheLauncher) {
  const RankTable table(4);
  for (const int rank : {0, 1}) be_rank(table, {rank, 4, 2}, [] { own_row::end(0, ""); });
  const auto ended = [&](int status) {
    return report_of(table, {.program = "mpirun", .status = status, .banners = "BANNER\n"});
  };
  for (const int code : {0, 3, 75}) {
    EXPECT_EQ(ended(exited(code)).code, code);
    EXPECT_EQ(ended(exited(code)).printed, "");
  }
  const Ended failed = ended(exited(1)), killed = ended(exited(128 + SIGKILL));
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(
      failed.printed,
      "BANNER\ntutti: mpirun: it ended with exit code 1, but no rank of this host has failed: "
      "the cause is on another host\n");
  EXPECT_EQ(killed.code, 1);
  EXPECT_TRUE(
      has_text(killed.printed, "a rank was killed by signal 9 (Killed), but no rank of this host"));
}

TEST(JobEnd, RanksThatTheLauncherEndedAreNotTheCause) {
  const RankTable table(2);
  for (const int rank : {0, 1})
    be_rank(table, {rank, 2, 2}, [] {
      own_row::note_sent_off();
      own_row::set_run(RunState::checkpoint);
    });
  const Ended end = report_of(table, {.program = "mpirun", .status = exited(1)});
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(
      end.printed,
      "tutti: mpirun: it ended with exit code 1 after it had ended its ranks: something has told "
      "it to. The last checkpoint stands: --resume goes on from it\n");
}

// When asked to end, the launcher ends its ranks, which save the run; they may end before they
// leave a code.
TEST(JobEnd, ARunThatHasStoppedInOrderIsToBeStartedAgain) {
  const RankTable table(2);
  for (const int rank : {0, 1})
    be_rank(table, {rank, 2, 2}, [] {
      own_row::note_sent_off();
      own_row::set_run(RunState::stopped);
    });
  EXPECT_EQ(report_of(table, {.program = "mpirun", .status = exited(1)}).code, 75);
}

TEST(JobEnd, SaysWhatARunWouldGoOnFrom) {
  const auto text = [](RunState run, bool trains, JobEnd end) {
    const RankTable table(2);
    be_rank(table, {1, 2, 2}, [run] { own_row::set_run(run); });
    end.trains = trains;
    return report_of(table, end).printed;
  };
  for (const JobEnd& end :
       {JobEnd{.first_gone = {1}, .program = "mpirun", .status = exited(128 + SIGKILL)},
        JobEnd{.program = "mpirun", .status = SIGKILL}}) {
    const auto says = [&](RunState run, bool trains, const char* what) {
      return text(run, trains, end).find(what) != std::string::npos;
    };
    EXPECT_TRUE(says(RunState::checkpoint, true, "The last checkpoint stands"));
    EXPECT_TRUE(says(RunState::no_checkpoint, true, "There is no checkpoint yet"));
    EXPECT_FALSE(says(RunState::no_checkpoint, true, "stands"));
    EXPECT_TRUE(says(RunState::not_known, true, "It had not begun to train"));
    EXPECT_FALSE(says(RunState::not_known, false, "train"));
  }
}

TEST(JobEnd, ARankThatIsToldToStopBeforeItHasBegunStopsTheJob) {
  const RankTable table(2);
  be_rank(table, {1, 2, 2}, [] { own_row::end(75, "", SIGTERM); });
  const auto ended = [&](int signal) {
    return report_of(table, {.program = "mpirun", .status = exited(128 + signal)});
  };
  EXPECT_EQ(ended(SIGTERM).code, 75);
  EXPECT_TRUE(has_text(ended(SIGTERM).printed, "before the first step"));
  EXPECT_EQ(ended(SIGKILL).code, 1);
}

TEST(JobEnd, WhoMissesAKilledRankHasNothingToAdd) {
  const RankTable table(4);
  be_rank(table, {1, 4, 4}, [] {});
  const std::string lost =
      "rank 1 on vm is gone (process " + std::to_string(table.row(1).process) + " has ended)";
  be_rank(table, {0, 4, 4}, [&] { own_row::end(1, lost, 0, true); });
  be_rank(table, {2, 4, 4}, [] { own_row::end(1, "no space"); });
  // It has received the error from rank 0.
  be_rank(table, {3, 4, 4}, [] { own_row::end(1, "rank 0 of the job has given up", 0, true); });
  const Ended end =
      report_of(table, {.first_gone = {1}, .program = "mpirun", .status = exited(128 + SIGKILL)});
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(has_text(end.printed, "rank 1/4 (process"));
  EXPECT_TRUE(has_text(end.printed, "no space"));
  EXPECT_FALSE(has_text(end.printed, "is gone"));
  EXPECT_FALSE(has_text(end.printed, "has given up"));
}

TEST(JobEnd, OneRanksErrorIsToldOnceAndByIt) {
  const RankTable table(3);
  const std::string text = "record.jsonl: cannot be written";
  be_rank(table, {1, 3, 3}, [] { own_row::end(1, "rank 2 on vm is gone", 0, true); });
  be_rank(table, {0, 3, 3}, [&] { own_row::end(1, named(2, 3, 1, text)); });  // as received from
                                                                              // rank 2
  be_rank(table, {2, 3, 3}, [&] { own_row::end(1, text); });
  const Ended end = report_of(table, {.program = "mpirun", .status = exited(1)});
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(end.printed, "tutti: " + named(2, 3, 1, text) + "\n");
}

TEST(JobEnd, RanksThatAllWaitAllSayForWhom) {
  const RankTable table(2);
  be_rank(table, {0, 2, 2}, [] { own_row::end(1, "no answer; not arrived: rank 1", 0, true); });
  be_rank(table, {1, 2, 2}, [] { own_row::end(1, "rank 0 of the job has given up", 0, true); });
  const Ended end = report_of(table, {.program = "mpirun", .status = exited(1)});
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(has_text(end.printed, "no answer"));
  EXPECT_TRUE(has_text(end.printed, "has given up"));
}

TEST(JobEnd, ALauncherThatWasKilledOnPurposeIsNoNews) {
  const RankTable table(2);
  be_rank(table, {0, 2, 1}, [] { own_row::end(1, "not arrived: rank 1 on node1"); });
  const Ended end =
      report_of(table, {.program = "mpirun", .status = SIGKILL, .launcher_killed = true});
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(has_text(end.printed, "not arrived: rank 1 on node1"));
  EXPECT_FALSE(has_text(end.printed, "was killed"));
}

}  // namespace
}  // namespace tutti::cli
