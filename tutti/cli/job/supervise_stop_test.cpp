// Tests signals to the starting process, and stops of its job.
#include <csignal>

#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/cli/job/signals.h"
#include "tutti/cli/job/supervise.h"
#include "tutti/cli/job/supervised_job.h"

namespace tutti::cli {
namespace {

TEST(Supervise, AStopBeforeTheFirstStepEndsTheJob) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    const RankTable table(2);
    const Ended end = supervised(table, {}, [&] {
      start_rank(table, 0, [] { stay(RankState::stoppable); });
      until(table, 0, RankState::stoppable);
      kill(getppid(), signal);  // rank 1 has not begun
      return idle();
    });
    EXPECT_EQ(end.code, 75);
    EXPECT_EQ(count(end.printed, "before the first step"), 1u) << end.printed;
  }
}

TEST(Supervise, AStopOfOneRankAtTheStartIsNoErrorOfTheOthers) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 1, [] { own_row::end(75, "", SIGTERM); });
    until(table, 1, RankState::ended);
    start_rank(table, 0, [] { own_row::end(1, "rank 1 on vm is gone"); });
    until(table, 0, RankState::ended);
    return 1;
  });
  EXPECT_EQ(end.code, 75);
  EXPECT_EQ(count(end.printed, "rank 1/2: stopped by signal 15 (SIGTERM) before"), 1u)
      << end.printed;
  EXPECT_EQ(count(end.printed, "is gone"), 0u) << end.printed;
}

TEST(Supervise, AStopOfOtherWorkSaysNothingOfSteps) {
  const RankTable table(1);
  const Ended end = supervised(table, {.trains = false}, [&] {
    start_rank(table, 0, idle);
    until(table, 0, RankState::starting);
    kill(getppid(), SIGTERM);
    return idle();
  });
  EXPECT_EQ(end.code, 128 + SIGTERM);
  EXPECT_EQ(end.printed, "tutti: stopped by signal 15 (SIGTERM)\n");
}

TEST(Supervise, AStopReachesRanksThatTrain) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR2}) {
    const RankTable table(2);
    const Ended end = supervised(table, {}, [&] {
      for (int rank : {0, 1}) start_rank(table, rank, [&] { end_at(signal); });
      for (int rank : {0, 1}) until(table, rank, RankState::stoppable);
      kill(getppid(), signal);
      for (int rank : {0, 1}) until(table, rank, RankState::ended);
      return 0;
    });
    EXPECT_EQ(end.code, 75);
    EXPECT_EQ(end.printed, "");
  }
}

// A pager without a user, or a terminal that Ctrl-S has stopped: a checkpoint is written all the
// same, and the job ends.
TEST(Supervise, AStopReachesRanksWhoseWordsNobodyReads) {
  for (const RankState state : {RankState::starting, RankState::stoppable}) {
    const RankTable table(1);
    SlowReader reader(std::chrono::seconds(100), 0);
    const int code = code_of_job(table, {}, [&] {
      const pid_t writer = fork();
      while (writer == 0) dprintf(STDERR_FILENO, "%s\n", std::string(1000, 'x').c_str());
      start_rank(table, 0, [&] { end_at(SIGTERM, state); });
      signal(SIGTERM, SIG_IGN);
      until(table, 0, state);
      usleep(500000);  // until the pipe is full
      kill(getppid(), SIGTERM);
      until(table, 0, RankState::ended);
      kill(writer, SIGKILL);
      return 0;
    });
    EXPECT_EQ(code, 75);
    EXPECT_FALSE(reader.reads());
    reader.text();
  }
}

TEST(Supervise, ASlowReaderLosesNothing) {
  for (const int flags : {0, O_NONBLOCK}) {
    const RankTable table(1);
    SlowReader reader(std::chrono::seconds(3), flags);  // later than the job's end
    const int code = code_of_job(table, {}, [&] {
      const std::string line(999, 'x');
      for (int i = 0; i < 100; ++i) dprintf(STDERR_FILENO, "%s\n", line.c_str());
      start_rank(table, 0, [] { own_row::end(1, "the reason"); });
      until(table, 0, RankState::ended);
      return 0;
    });
    EXPECT_EQ(code, 1);
    const std::string text = reader.text();
    EXPECT_EQ(count(text, std::string(999, 'x') + "\n"), 100u);
    EXPECT_EQ(text.substr(text.size() - 18), "tutti: the reason\n");
  }
}

// A launcher needs a second to signal its ranks: none of them may train meanwhile.
TEST(Supervise, AStopBeforeTheFirstStepReachesTheRanksWithoutTheLauncher) {
  const RankTable table(3);
  const Ended end = supervised(table, {}, [&] {
    signal(SIGTERM, [](int) {
      own_row::end(75, "", SIGTERM);
      _exit(0);
    });
    start_rank(table, 0, [] { stay(RankState::stoppable); });
    start_rank(table, 1, idle);  // and rank 2 never begins
    signal(SIGTERM, SIG_IGN);
    until(table, 0, RankState::stoppable);
    until(table, 1, RankState::starting);
    kill(getppid(), SIGTERM);
    return idle();
  });
  EXPECT_EQ(end.code, 75);
  for (int rank : {0, 1}) EXPECT_EQ(table.row(rank).code, 75) << rank;
}

TEST(Supervise, ASignalEndsAJobThatHangsAtItsEnd) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, [] { own_row::end(0, ""); });
    start_rank(table, 1, [] {
      signal(SIGTERM, SIG_IGN);
      stay(RankState::over);
    });
    until(table, 0, RankState::ended);
    until(table, 1, RankState::over);
    kill(getppid(), SIGTERM);
    return idle();
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(has_text(end.printed, "the job was at its end, and rank 1/2 (process "));
  EXPECT_TRUE(has_text(end.printed, "of signal 15 (SIGTERM)"));
  EXPECT_FALSE(runs(table.row(1).process));
}

TEST(Supervise, ASignalAtTheEndLetsTheRanksEndWell) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, [] { own_row::end(3, ""); });
    const pid_t slow = start_rank(table, 1, [] {
      signal(SIGTERM, SIG_IGN);
      own_row::set_state(RankState::over);
      usleep(1500000);
      own_row::end(3, "");
    });
    until(table, 0, RankState::ended);
    until(table, 1, RankState::over);
    kill(getppid(), SIGTERM);
    while (runs(slow)) usleep(1000);
    return 0;
  });
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.printed, "");
}

TEST(Supervise, ASecondInterruptEndsTheJobAtOnce) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 1, [] { own_row::end(75, ""); });  // it stopped as the first signal asked
    until(table, 1, RankState::ended);
    start_rank(table, 0, [&] {
      signal(SIGINT, [](int) { kill(getppid(), SIGUSR1); });
      stay(RankState::stoppable);
    });
    signal(SIGUSR1, [](int) { kill(getppid(), SIGINT); });  // once the first signal has arrived
    until(table, 0, RankState::stoppable);
    kill(getppid(), SIGINT);
    return idle();
  });
  EXPECT_EQ(end.code, 130);
  EXPECT_TRUE(has_text(end.printed, "second interrupt"));
}

TEST(Supervise, SaysWhoIsStoppedWhenNobodyElseCan) {
  for (const bool launcher_too : {false, true}) {
    const RankTable table(2);
    const Ended end = supervised(table, {.seconds = patience(0.5)}, [&] {
      for (int rank : {0, 1}) start_rank(table, rank, [] { raise(SIGSTOP); });
      for (int rank : {0, 1}) until(table, rank, RankState::starting);
      if (launcher_too) raise(SIGSTOP);
      return idle();
    });
    EXPECT_EQ(end.code, 1);
    EXPECT_TRUE(has_text(end.printed, "stopped by a signal (state T)"));
    EXPECT_EQ(count(end.printed, "rank 0/2"), 1u) << end.printed;
    EXPECT_EQ(count(end.printed, "rank 1/2"), 1u) << end.printed;
    EXPECT_EQ(count(end.printed, "mpirun (process"), launcher_too ? 1u : 0u) << end.printed;
  }
}

// A launcher continues stopped processes in order to end them. This one would then use peers that
// have ended. The other rank can continue without it, and saves the run.
TEST(Supervise, AStoppedRankDoesNotGoOnWhenTheJobEnds) {
  static pid_t stopped;
  const RankTable table(2);
  const Ended end = supervised(table, {.seconds = patience(0.5)}, [&] {
    signal(SIGTERM, [](int) { kill(stopped, SIGCONT); });
    stopped = start_rank(table, 0, [] {
      signal(SIGTERM, SIG_IGN);
      raise(SIGSTOP);
      own_row::end(7, "went on");
    });
    const pid_t saves = start_rank(table, 1, [] {
      signal(SIGTERM, [](int) {
        usleep(200'000);
        own_row::set_run(RunState::stopped);
        _exit(75);
      });
      stay(RankState::stoppable);
    });
    while (runs(saves)) usleep(1000);
    return 75;
  });
  EXPECT_EQ(end.code, 75);
  EXPECT_NE(table.row(0).state, RankState::ended) << table.row(0).message.data();
  EXPECT_EQ(count(end.printed, "kill -CONT"), 0u) << end.printed;
}

// The end of the job itself asks starting ranks to stop, and they have saved nothing.
TEST(Supervise, AStoppedRankBesideOnesThatStartIsAFailure) {
  const RankTable table(2);
  const Ended end = supervised(table, {.seconds = patience(0.5)}, [&] {
    signal(SIGTERM, SIG_IGN);  // its ranks would end with it before they have left a code
    start_rank(table, 0, [] { raise(SIGSTOP); });
    const pid_t starts = start_rank(table, 1, [] {
      stop_while_starting({.trains = true});
      idle();
    });
    while (runs(starts)) usleep(1000);
    return 75;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(table.row(1).code, 75);
}

// A scheduler may give the node to another job for a while: no process is continued at the same
// moment as the others.
TEST(Supervise, TimeInWhichItWasStoppedItselfDoesNotCount) {
  const RankTable table(1);
  const double limit = patience(2);  // the same delay for the job and for this process
  const pid_t job = fork();
  if (job == 0)
    _exit(supervised(table, {.seconds = limit}, [&] {
            const pid_t rank = start_rank(table, 0, [] {
              own_row::set_state(RankState::stoppable);
              raise(SIGSTOP);
              own_row::end(3, "");
            });
            while (runs(rank)) usleep(1000);
            return 3;
          }).code);
  until(table, 0, RankState::stoppable);
  sleep_patiently(1.5);  // until it has seen the rank stopped, and less than the limit
  kill(job, SIGSTOP);
  sleep_patiently(4);  // more than the limit together with the earlier time
  kill(job, SIGCONT);
  usleep(300'000);
  kill(table.row(0).process, SIGCONT);
  EXPECT_EQ(WEXITSTATUS(status_of(job)), 3);
}

// The shell's "Stopped" must be true of the whole job, and `fg` must bring all of it back.
TEST(Supervise, AStopOfTheTerminalStopsLauncherAndRanks) {
  const RankTable table(1);
  const auto is = [](pid_t process, bool stopped) {
    const auto state = process_state(process);
    return state && state->stopped() == stopped;
  };
  const pid_t job = fork();
  if (job == 0) {
    setpgid(0, 0);  // as a shell does; without another group beside it no process could continue it
    _exit(supervised(table, {}, [&] {
            setpgid(0, 0);
            const pid_t rank = start_rank(table, 0, [] {
              setpgid(0, 0);
              stay(RankState::stoppable);
            });
            while (runs(rank)) usleep(1000);
            return 3;
          }).code);
  }
  until(table, 0, RankState::stoppable);
  const pid_t rank = table.row(0).process, launcher = process_state(rank)->parent;
  for (const pid_t process : {job, launcher, rank}) EXPECT_TRUE(is(process, false));
  kill(job, SIGTSTP);
  for (const pid_t process : {job, launcher, rank})
    while (!is(process, true)) usleep(1000);
  kill(job, SIGCONT);
  for (const pid_t process : {job, launcher, rank})
    while (!is(process, false)) usleep(1000);
  kill(rank, SIGKILL);
  EXPECT_TRUE(WIFEXITED(status_of(job)));
}

TEST(Supervise, AfterAWarningItWaitsOnWhereThatIsAsked) {
  const RankTable table(1);
  const Ended end = supervised(table, {.seconds = patience(0.5), .ends_job = false}, [&] {
    start_rank(table, 0, [] {
      raise(SIGSTOP);
      own_row::end(0, "");
    });
    until(table, 0, RankState::starting);
    for (struct stat printed{}; printed.st_size == 0; usleep(1000))
      fstat(supervisors_errors, &printed);
    kill(table.row(0).process, SIGCONT);
    until(table, 0, RankState::ended);
    return 0;
  });
  EXPECT_EQ(end.code, 0);
  EXPECT_TRUE(has_text(end.printed, "waiting goes on"));
}

}  // namespace
}  // namespace tutti::cli
