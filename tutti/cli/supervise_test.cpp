// The starting process's side of a job, with a shell or a child of this test in the place of MPI's
// launcher and its ranks.
#include "tutti/cli/supervise.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "tutti/base/process_state.h"

namespace tutti {
namespace {

struct Ended {
  int code = 0;
  std::string said;
};

/// The code of a job whose launcher is a child that runs `launcher`; its ranks are children of
/// that.
int code_of_job(const RankTable& table, const Patience& patience,
                const std::function<int()>& launcher) {
  int errors[2];
  EXPECT_EQ(pipe(errors), 0);
  const sigset_t signals = supervised_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t child = fork();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    dup2(errors[1], STDERR_FILENO);
    close(errors[1]);
    _exit(launcher());
  }
  close(errors[1]);
  const int code = supervise({.launcher = child, .output = errors[0]}, table, patience);
  close(errors[0]);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return code;
}

Ended supervised(const RankTable& table, const Patience& patience,
                 const std::function<int()>& launcher) {
  testing::internal::CaptureStderr();
  const int code = code_of_job(table, patience, launcher);
  return {code, testing::internal::GetCapturedStderr()};
}

/// This process's standard error, until the destructor, as a pipe whose reader sleeps for so long
/// and then reads all.
class SlowReader {
 public:
  SlowReader(std::chrono::milliseconds sleep, int flags) : before_(dup(STDERR_FILENO)) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    fcntl(ends[1], F_SETFL, flags);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    sigset_t all, before;  // a signal to this process must not come to that thread
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    reader_ = std::thread([this, sleep, end = ends[0]] {
      std::unique_lock lock(mutex_);
      woken_.wait_for(lock, sleep, [this] { return over_; });
      lock.unlock();
      reads_ = true;
      char bytes[1000];
      for (ssize_t count; (count = read(end, bytes, sizeof bytes)) > 0;)
        text_.append(bytes, static_cast<size_t>(count));
      close(end);
    });
    sigprocmask(SIG_SETMASK, &before, nullptr);
  }
  ~SlowReader() { text(); }
  SlowReader(const SlowReader&) = delete;
  SlowReader& operator=(const SlowReader&) = delete;

  bool reads() const { return reads_; }

  /// All that was written; standard error is what it was before.
  std::string text() {
    if (!reader_.joinable()) return text_;
    dup2(before_, STDERR_FILENO);
    close(before_);
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    woken_.notify_one();
    reader_.join();
    return text_;
  }

 private:
  int before_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool over_ = false;
  std::atomic<bool> reads_ = false;  ///< it has begun to
  std::thread reader_;
  std::string text_;
};

pid_t start_rank(const RankTable& table, int rank, const std::function<void()>& work,
                 int ranks_here = -1) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    own_row::join(table.value(), {rank, table.ranks(), ranks_here});
    work();
    _exit(0);
  }
  return child;
}

/// Waits in the parent's process until the child's row says so.
void until(const RankTable& table, int rank, RankState state) {
  while (table.row(rank).state != state) usleep(1000);
}

/// Not of one that has ended and whose new parent has not asked for its status yet.
bool runs(pid_t process) {
  const auto state = process_state(process);
  return state && state->runs();
}

[[noreturn]] void idle() {
  for (;;) pause();
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++found;
  return found;
}

TEST(Supervise, TheRanksCodeIsTheJobs) {
  for (const int code : {0, 3, 75}) {
    const RankTable table(2);
    const Ended end = supervised(table, {}, [&] {
      for (int rank : {0, 1}) start_rank(table, rank, [&] { own_row::end(code, ""); });
      for (int rank : {0, 1}) until(table, rank, RankState::ended);
      return 0;
    });
    EXPECT_EQ(end.code, code);
    EXPECT_EQ(end.said, "");
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
  EXPECT_EQ(end.said, "tutti: batch.global = 7 does not divide\n");
}

TEST(Supervise, TheLaunchersOwnErrorIsShown) {
  const RankTable table(2);
  const std::string line(70, '-');
  const Ended end = supervised(table, {}, [&] {
    dprintf(2, "%s\nThere are not enough slots\n%s\n", line.c_str(), line.c_str());
    return 1;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_NE(end.said.find("There are not enough slots"), end.said.npos);
  EXPECT_NE(end.said.find("mpirun: it ended with exit code 1 before a rank"), end.said.npos);
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
  EXPECT_NE(end.said.find("before a rank of Tutti had begun"), end.said.npos) << end.said;
  EXPECT_EQ(well.code, 3);
}

TEST(Supervise, NamesTheRankThatWasKilled) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, idle);
    const pid_t victim = start_rank(table, 1, idle);
    for (int rank : {0, 1}) until(table, rank, RankState::starting);
    kill(victim, SIGKILL);
    sleep(1);  // as launchers do, before they end the others
    return 128 + SIGKILL;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_NE(end.said.find("rank 1/2 (process "), end.said.npos) << end.said;
  EXPECT_NE(end.said.find("killed by signal 9"), end.said.npos) << end.said;
}

TEST(Supervise, ARankThatIsKilledBeforeItHasBegunIsAFailure) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, [] { own_row::end(75, "", SIGTERM); });  // as the launcher ends the rest
    until(table, 0, RankState::ended);
    return 128 + SIGKILL;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_NE(end.said.find("a rank was killed by signal 9 (Killed) when 1 of 2 ranks had begun"),
            end.said.npos)
      << end.said;
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
  EXPECT_NE(end.said.find("was killed by signal 9"), end.said.npos) << end.said;
  EXPECT_FALSE(runs(table.row(0).process));
}

TEST(Supervise, AStopBeforeTheFirstStepEndsTheJob) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    const RankTable table(2);
    const Ended end = supervised(table, {}, [&] {
      start_rank(table, 0, [] {
        own_row::set_state(RankState::stoppable);
        idle();
      });
      until(table, 0, RankState::stoppable);
      kill(getppid(), signal);  // rank 1 has not begun
      idle();
      return 0;
    });
    EXPECT_EQ(end.code, 75);
    EXPECT_EQ(count(end.said, "before the first step"), 1u) << end.said;
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
  EXPECT_EQ(count(end.said, "rank 1/2: stopped by signal 15 (SIGTERM) before"), 1u) << end.said;
  EXPECT_EQ(count(end.said, "is gone"), 0u) << end.said;
}

TEST(Supervise, AStopOfOtherWorkSaysNothingOfSteps) {
  const RankTable table(1);
  const Ended end = supervised(table, {.trains = false}, [&] {
    start_rank(table, 0, idle);
    until(table, 0, RankState::starting);
    kill(getppid(), SIGTERM);
    idle();
    return 0;
  });
  EXPECT_EQ(end.code, 128 + SIGTERM);
  EXPECT_EQ(end.said, "tutti: stopped by signal 15 (SIGTERM)\n");
}

TEST(Supervise, AStopReachesRanksThatTrain) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR2}) {
    const RankTable table(2);
    const Ended end = supervised(table, {}, [&] {
      for (int rank : {0, 1})
        start_rank(table, rank, [&] {
          sigset_t set;
          sigemptyset(&set);
          sigaddset(&set, signal);
          sigprocmask(SIG_BLOCK, &set, nullptr);
          own_row::set_state(RankState::stoppable);
          int got = 0;
          sigwait(&set, &got);
          own_row::end(75, "");
        });
      for (int rank : {0, 1}) until(table, rank, RankState::stoppable);
      kill(getppid(), signal);
      for (int rank : {0, 1}) until(table, rank, RankState::ended);
      return 0;
    });
    EXPECT_EQ(end.code, 75);
    EXPECT_EQ(end.said, "");
  }
}

// A pager that nobody pages, or a terminal that Ctrl-S has stopped: a checkpoint is written all the
// same, and the job ends.
TEST(Supervise, AStopReachesRanksWhoseWordsNobodyReads) {
  for (const RankState state : {RankState::starting, RankState::stoppable}) {
    const RankTable table(1);
    SlowReader reader(std::chrono::seconds(100), 0);
    const int code = code_of_job(table, {}, [&] {
      const pid_t writer = fork();
      while (writer == 0) dprintf(STDERR_FILENO, "%s\n", std::string(1000, 'x').c_str());
      start_rank(table, 0, [&] {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, nullptr);
        own_row::set_state(state);
        int got = 0;
        sigwait(&set, &got);
        own_row::end(75, "");
      });
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

// A launcher needs a second to tell its ranks: none of them may train meanwhile.
TEST(Supervise, AStopBeforeTheFirstStepReachesTheRanksWithoutTheLauncher) {
  const RankTable table(3);
  const Ended end = supervised(table, {}, [&] {
    signal(SIGTERM, [](int) {
      own_row::end(75, "", SIGTERM);
      _exit(0);
    });
    start_rank(table, 0, [] {
      own_row::set_state(RankState::stoppable);
      idle();
    });
    start_rank(table, 1, idle);  // and rank 2 never begins
    signal(SIGTERM, SIG_IGN);
    until(table, 0, RankState::stoppable);
    until(table, 1, RankState::starting);
    kill(getppid(), SIGTERM);
    idle();
    return 0;
  });
  EXPECT_EQ(end.code, 75);
  for (int rank : {0, 1}) EXPECT_EQ(table.row(rank).code, 75) << rank;
}

TEST(Supervise, RanksOfOtherHostsAreNotTakenForRanksThatHaveNotBegun) {
  const RankTable table(4);
  const Ended end = supervised(table, {}, [&] {
    for (int rank : {1, 3})
      start_rank(
          table, rank,
          [] {
            sigset_t set;
            sigemptyset(&set);
            sigaddset(&set, SIGTERM);
            sigprocmask(SIG_BLOCK, &set, nullptr);
            own_row::set_state(RankState::stoppable);
            int got = 0;
            sigwait(&set, &got);
            own_row::end(75, "");
          },
          2);
    for (int rank : {1, 3}) until(table, rank, RankState::stoppable);
    kill(getppid(), SIGTERM);
    for (int rank : {1, 3}) until(table, rank, RankState::ended);
    return 75;  // as a rank of another host ended
  });
  EXPECT_EQ(end.code, 75);
  EXPECT_EQ(end.said, "");
}

TEST(Supervise, ASignalEndsAJobThatHangsAtItsEnd) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, [] { own_row::end(0, ""); });
    start_rank(table, 1, [] {
      signal(SIGTERM, SIG_IGN);
      own_row::set_state(RankState::over);
      idle();
    });
    until(table, 0, RankState::ended);
    until(table, 1, RankState::over);
    kill(getppid(), SIGTERM);
    idle();
    return 0;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_NE(end.said.find("the job was at its end, and rank 1/2 (process "), end.said.npos)
      << end.said;
  EXPECT_NE(end.said.find("of signal 15 (SIGTERM)"), end.said.npos) << end.said;
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
  EXPECT_EQ(end.said, "");
}

TEST(Supervise, ALauncherThatWaitsForASilentHostIsKilled) {
  const RankTable table(4);
  const Ended end = supervised(table, {}, [&] {
    signal(SIGTERM, SIG_IGN);
    for (int rank : {0, 1})
      start_rank(
          table, rank, [] { own_row::end(1, "not arrived: rank 2 on node1"); }, 2);
    idle();
    return 0;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(count(end.said, "not arrived: rank 2 on node1"), 1u) << end.said;
  EXPECT_EQ(count(end.said, "still waits 10 s after its ranks on this host have ended"), 1u)
      << end.said;
  EXPECT_EQ(count(end.said, "another host of the job does not answer"), 1u) << end.said;
  EXPECT_EQ(count(end.said, "was killed by"), 0u) << end.said;
}

// Open MPI 4 does that now and then when a rank is killed right after its birth.
TEST(Supervise, ALauncherThatHasLostARankIsKilled) {
  const RankTable table(2);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, [] { own_row::end(75, "", SIGTERM); });
    signal(SIGTERM, SIG_IGN);
    idle();
    return 0;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(count(end.said, "so it is killed: 1 of 2 ranks had begun"), 1u) << end.said;
}

TEST(Supervise, ALauncherThatBringsNoRankIsEnded) {
  const RankTable table(2);
  const Ended end = supervised(table, {.start_seconds = 1}, [&] {
    idle();
    return 0;
  });
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(count(end.said, "has not brought a rank to its beginning within 1 s"), 1u) << end.said;
}

TEST(Supervise, ASecondInterruptEndsTheJobAtOnce) {
  const RankTable table(1);
  const Ended end = supervised(table, {}, [&] {
    start_rank(table, 0, [&] {
      signal(SIGINT, [](int) { kill(getppid(), SIGUSR1); });
      own_row::set_state(RankState::stoppable);
      for (;;) pause();
    });
    signal(SIGUSR1, [](int) { kill(getppid(), SIGINT); });  // once the first has arrived
    until(table, 0, RankState::stoppable);
    kill(getppid(), SIGINT);
    for (;;) pause();
    return 0;
  });
  EXPECT_EQ(end.code, 130);
  EXPECT_NE(end.said.find("second interrupt"), end.said.npos);
}

TEST(Supervise, SaysWhoIsStoppedWhenNobodyElseCan) {
  for (const bool launcher_too : {false, true}) {
    const RankTable table(2);
    const Ended end = supervised(table, {.seconds = 0.5}, [&] {
      for (int rank : {0, 1}) start_rank(table, rank, [] { raise(SIGSTOP); });
      for (int rank : {0, 1}) until(table, rank, RankState::starting);
      if (launcher_too) raise(SIGSTOP);
      idle();
      return 0;
    });
    EXPECT_EQ(end.code, 1);
    EXPECT_NE(end.said.find("stopped by a signal (state T)"), end.said.npos) << end.said;
    EXPECT_EQ(count(end.said, "rank 0/2"), 1u) << end.said;
    EXPECT_EQ(count(end.said, "rank 1/2"), 1u) << end.said;
    EXPECT_EQ(count(end.said, "mpirun (process"), launcher_too ? 1u : 0u) << end.said;
  }
}

// As a scheduler does that gives the node to another job for a while: nobody is continued at the
// same moment as the others.
TEST(Supervise, TimeInWhichItWasStoppedItselfDoesNotCount) {
  const RankTable table(1);
  const pid_t job = fork();
  if (job == 0)
    _exit(supervised(table, {.seconds = 0.5}, [&] {
            const pid_t rank = start_rank(table, 0, [] {
              own_row::set_state(RankState::stoppable);
              raise(SIGSTOP);
              own_row::end(3, "");
            });
            while (runs(rank)) usleep(1000);
            return 3;
          }).code);
  until(table, 0, RankState::stoppable);
  usleep(1'500'000);  // until it has seen the rank stopped
  kill(job, SIGSTOP);
  usleep(4'000'000);
  kill(job, SIGCONT);
  usleep(300'000);
  kill(table.row(0).process, SIGCONT);
  int status = 0;
  waitpid(job, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
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
    setpgid(0, 0);  // as a shell does; without another group beside it nobody could continue it
    _exit(supervised(table, {}, [&] {
            setpgid(0, 0);
            const pid_t rank = start_rank(table, 0, [] {
              setpgid(0, 0);
              own_row::set_state(RankState::stoppable);
              for (;;) pause();
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
  int status = 0;
  waitpid(job, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
}

TEST(Supervise, AfterAWarningItWaitsOnWhereThatIsAsked) {
  const RankTable table(1);
  const Ended end = supervised(table, {.seconds = 0.5, .ends_job = false}, [&] {
    start_rank(table, 0, [] {
      raise(SIGSTOP);
      own_row::end(0, "");
    });
    until(table, 0, RankState::starting);
    sleep(6);
    kill(table.row(0).process, SIGCONT);
    until(table, 0, RankState::ended);
    return 0;
  });
  EXPECT_EQ(end.code, 0);
  EXPECT_NE(end.said.find("waiting goes on"), end.said.npos) << end.said;
}

}  // namespace
}  // namespace tutti
