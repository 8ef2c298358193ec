#include "tutti/cli/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tutti/base/error.h"

namespace tutti {

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
    return (now.ss_flags & SS_DISABLE) == 0;
  };
  ASSERT_FALSE(alternate());
  {
    SignalFlags flags;
    struct sigaction action {};
    sigaction(SIGTERM, nullptr, &action);
    EXPECT_NE(action.sa_flags & SA_ONSTACK, 0);
    EXPECT_TRUE(alternate());
    std::raise(SIGTERM);
    EXPECT_TRUE(flags.stop_requested());
  }
  EXPECT_FALSE(alternate());
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

TEST(SignalFlagsDeathTest, FormerHandlersReturn) {
  EXPECT_EXIT(
      {
        { SignalFlags flags; }
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace tutti
