// Tests how a job ends by itself, and what is reported about it.
#include "tutti/cli/job/supervise.h"

#include <csignal>

#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/cli/job/supervised_job.h"

namespace tutti::cli {
namespace {

TEST(Supervise, TheRanksCodeIsTheJobs) {
  for (const int code : {0, 3, 75}) {
    const RankTable table(2);
    const Ended end = supervised(table, {}, [&] {
      for (int rank : {0, 1}) start_rank(table, rank, [&] { own_row::end(code, ""); });
      for (int rank : {0, 1}) until(table, rank, RankState::ended);
      return 0;
    });
    EXPECT_EQ(end.code, code);
    EXPECT_EQ(end.printed, "");
  }
}

TEST(Supervise, OneErrorOfAllRanksIsSaidOnceWithoutBanners) {
  const RankTable table(3);
  const Ended end = supervised(table, {}, [&] {
    for (int rank : {0, 1, 2}) {
      start_rank(table, rank, [&] { own_row::end(2, "batch.global = 7 does not divide"); });
      until(table, rank, RankState::ended);
    }
    const std::string line(70, '-');
    dprintf(2, "%s\nPrimary job terminated normally, but ...\n%s\n", line.c_str(), line.c_str());
    return 2;
  });
  EXPECT_EQ(end.code, 2);
  EXPECT_EQ(end.printed, "tutti: batch.global = 7 does not divide\n");
}

TEST(Supervise, TheLaunchersOwnErrorIsShown) {
  const RankTable table(2);
  const std::string line(70, '-');
  const Ended end = supervised(table, {}, [&] {
    dprintf(2, "%s\nThere are not enough slots\n%s\n", line.c_str(), line.c_str());
    return 1;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(has_text(end.printed, "There are not enough slots"));
  EXPECT_TRUE(has_text(end.printed, "mpirun: it ended with exit code 1 before a rank"));
}

// Where SIGCHLD is ignored the system keeps no status.
TEST(Supervise, ALauncherWhoseStatusIsLostIsNoSuccess) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const RankTable table(2), done(2);
  const Ended end = supervised(table, {}, [] { return 1; });
  const Ended well = supervised(done, {}, [&] {
    for (int rank : {0, 1}) start_rank(done, rank, [] { own_row::end(3, ""); });
    for (int rank : {0, 1}) until(done, rank, RankState::ended);
    return 0;
  });
  std::signal(SIGCHLD, before);
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(has_text(end.printed, "before a rank of Tutti had begun"));
  EXPECT_EQ(well.code, 3);
}

TEST(Supervise, NamesTheRankThatWasKilled) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, idle);
    const pid_t victim = start_rank(table, 1, idle);
    for (int rank : {0, 1}) until(table, rank, RankState::starting);
    kill(victim, SIGKILL);
    sleep(1);  // like launchers, before they end the others
    return 128 + SIGKILL;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(has_text(end.printed, "rank 1/2 (process "));
  EXPECT_TRUE(has_text(end.printed, "killed by signal 9"));
}

TEST(Supervise, ARankThatIsKilledBeforeItHasBegunIsAFailure) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, [] { own_row::end(75, "", SIGTERM); });  // as the launcher ends the rest
    until(table, 0, RankState::ended);
    return 128 + SIGKILL;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(
      has_text(end.printed, "a rank was killed by signal 9 (Killed) when 1 of 2 ranks had begun"));
}

TEST(Supervise, SaysThatTheLauncherWasKilledAndLeavesNoRank) {
  const RankTable table(1);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, idle);
    until(table, 0, RankState::starting);
    kill(table.row(0).process, SIGSTOP);  // a stopped rank, too
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(has_text(end.printed, "was killed by signal 9"));
  EXPECT_FALSE(runs(table.row(0).process));
}

TEST(Supervise, RanksOfOtherHostsAreNotTakenForRanksThatHaveNotBegun) {
  const RankTable table(4);
  const Ended end = supervised(table, {}, [&] {
    for (int rank : {1, 3})
      start_rank(
          table, rank, [] { end_at(SIGTERM); }, 2);
    for (int rank : {1, 3}) until(table, rank, RankState::stoppable);
    kill(getppid(), SIGTERM);
    for (int rank : {1, 3}) until(table, rank, RankState::ended);
    return 75;  // the code of a rank on another host
  });
  EXPECT_EQ(end.code, 75);
  EXPECT_EQ(end.printed, "");
}

TEST(Supervise, ALauncherThatWaitsForASilentHostIsKilled) {
  const RankTable table(4);
  const Ended end = supervised(table, {}, [&] {
    signal(SIGTERM, SIG_IGN);
    for (int rank : {0, 1})
      start_rank(
          table, rank, [] { own_row::end(1, "not arrived: rank 2 on node1"); }, 2);
    return idle();
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(count(end.printed, "not arrived: rank 2 on node1"), 1u) << end.printed;
  EXPECT_EQ(count(end.printed, "still waits 10 s after its ranks on this host have ended"), 1u)
      << end.printed;
  EXPECT_EQ(count(end.printed, "another host of the job does not answer"), 1u) << end.printed;
  EXPECT_EQ(count(end.printed, "was killed by"), 0u) << end.printed;
}

// Open MPI 4 sometimes does this when a rank is killed right after its birth.
TEST(Supervise, ALauncherThatHasLostARankIsKilled) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, [] { own_row::end(75, "", SIGTERM); });
    signal(SIGTERM, SIG_IGN);
    return idle();
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(count(end.printed, "so it is killed: 1 of 2 ranks had begun"), 1u) << end.printed;
}

TEST(Supervise, ALauncherThatBringsNoRankIsEnded) {
  const RankTable table(2);
  const Ended end =
      supervised(table, {.start_seconds = static_cast<int>(patience(1))}, [&] { return idle(); });
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(count(end.printed, "has not brought a rank to its beginning within "), 1u)
      << end.printed;
}

}  // namespace
}  // namespace tutti::cli
