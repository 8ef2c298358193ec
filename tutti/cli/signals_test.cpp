#include "tutti/cli/signals.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti {

TEST(SignalFlags, OrderlyStops) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2, SIGINT}) {
    SignalFlags flags;
    EXPECT_FALSE(flags.stop_requested());
    std::raise(SIGCONT);
    EXPECT_FALSE(flags.stop_requested());
    std::raise(signal);
    EXPECT_TRUE(flags.stop_requested());
    EXPECT_EQ(flags.signal_number(), signal);
  }
}

TEST(SignalFlags, TheFirstIsKeptAndOnlyOneObjectLives) {
  SignalFlags flags;
  std::raise(SIGUSR2);
  std::raise(SIGTERM);
  EXPECT_EQ(flags.signal_number(), SIGUSR2);
  EXPECT_THROW(SignalFlags second, InternalError);
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
