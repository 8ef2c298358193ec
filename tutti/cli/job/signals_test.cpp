#include "tutti/cli/job/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "tutti/base/error.h"
#include "tutti/base/process_state.h"
#include "tutti/cli/job/launcher_watch.h"
#include "tutti/cli/job/rank_table.h"

namespace tutti::cli {

// Tests this both while a rank starts and while it trains.
TEST(SignalFlags, ARankKnowsWhetherItsLauncherHasToldItToEnd) {
  const RankTable table(2);
  const auto start = [&](int rank, const std::function<void()>& work) {
    const pid_t child = fork();
    if (child != 0) return child;
    own_row::join(table.value(), {rank, 2});
    remember_launcher(0);
    work();
    own_row::set_state(RankState::over);
    for (;;) pause();
  };
  const pid_t starts = start(0, [] { stop_while_starting({.trains = true}); });
  const pid_t trains = start(1, [] {
    static SignalFlags flags;
    std::raise(SIGTERM);  // from another process
  });
  for (const int rank : {0, 1})
    while (table.row(rank).state != RankState::over) usleep(1000);
  EXPECT_FALSE(table.row(1).sent_off);
  kill(starts, SIGTERM);
  kill(trains, SIGTERM);
  while (process_state(starts)->runs() || !table.row(1).sent_off) usleep(1000);
  EXPECT_TRUE(table.row(0).sent_off);
  EXPECT_EQ(table.row(0).code, 75);
  kill(trains, SIGKILL);
}

TEST(SignalFlags, OrderlyStops) {
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT}) {
    SignalFlags flags;
    EXPECT_FALSE(flags.stop_requested());
    std::raise(SIGCONT);
    EXPECT_FALSE(flags.stop_requested());
    std::raise(signal);
    EXPECT_TRUE(flags.stop_requested());
    EXPECT_EQ(flags.signal_number(), signal);
  }
}

TEST(SignalFlags, HandlersHaveAStackOfTheirOwn) {
  const auto alternate = [] {
    stack_t now{};
    sigaltstack(nullptr, &now);
    return (now.ss_flags & SS_DISABLE) == 0 ? now.ss_sp : nullptr;
  };
  void* const before = alternate();  // a library may have one for handlers of its own
  {
    SignalFlags flags;
    struct sigaction action {};
    sigaction(SIGTERM, nullptr, &action);
    EXPECT_NE(action.sa_flags & SA_ONSTACK, 0);
    EXPECT_NE(alternate(), before);
    std::raise(SIGTERM);
    EXPECT_TRUE(flags.stop_requested());
  }
  EXPECT_EQ(alternate(), before);
}

TEST(SignalFlags, TheFirstIsKeptAndOnlyOneObjectLives) {
  SignalFlags flags;
  std::raise(SIGUSR2);
  std::raise(SIGTERM);
  EXPECT_EQ(flags.signal_number(), SIGUSR2);
  EXPECT_THROW(SignalFlags second, InternalError);
}

TEST(SignalFlags, NohupHolds) {
  std::signal(SIGHUP, SIG_IGN);
  {
    SignalFlags flags;
    std::raise(SIGHUP);
    EXPECT_FALSE(flags.stop_requested());
  }
  std::signal(SIGHUP, SIG_DFL);
}

TEST(StartSignalsDeathTest, EndAtOnceWithALine) {
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT})
    EXPECT_EXIT(
        {
          stop_while_starting({.trains = true});
          std::raise(signal);
        },
        testing::ExitedWithCode(75), "stopped by signal .* before the first step");
  EXPECT_EXIT(
      {
        stop_while_starting({.trains = false, .speaks = false});
        std::raise(SIGTERM);
      },
      testing::ExitedWithCode(128 + SIGTERM), "^$");
}

TEST(StartSignalsDeathTest, MeanNothingOnceTheWorkIsDone) {
  EXPECT_EXIT(
      {
        stop_while_starting({.trains = true});
        { SignalFlags flags; }
        std::raise(SIGTERM);
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SignalFlagsDeathTest, SecondInterruptEndsNow) {
  EXPECT_EXIT(
      {
        SignalFlags flags;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(SignalFlags, ASecondInterruptMeansNothingOnceTheRunIsSaved) {
  SignalFlags flags;
  std::raise(SIGINT);
  flags.ignore_from_now();
  std::raise(SIGINT);
  std::raise(SIGTERM);
  EXPECT_EQ(flags.signal_number(), SIGINT);
}

TEST(SignalFlagsDeathTest, FormerHandlersReturn) {
  EXPECT_EXIT(
      {
        { SignalFlags flags; }
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace tutti::cli
