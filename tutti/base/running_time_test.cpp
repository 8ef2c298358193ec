#include "tutti/base/running_time.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(RunningTime, LeavesOutWhatAStoppedProcessMissed) {
  using namespace std::chrono_literals;
  const RunningTime::Clock::time_point begin{};
  RunningTime time(begin);
  EXPECT_DOUBLE_EQ(time.seconds(begin + 1s), 1);
  EXPECT_DOUBLE_EQ(time.seconds(begin + 2500ms), 2.5);
  EXPECT_DOUBLE_EQ(time.seconds(begin + 100s), 3) << "stopped: a look's time alone";
  EXPECT_DOUBLE_EQ(time.seconds(begin + 101s), 4) << "and then it goes on";
}

}  // namespace
}  // namespace tutti
