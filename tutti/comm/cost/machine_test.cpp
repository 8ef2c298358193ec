#include "tutti/comm/cost/machine.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti::comm {
namespace {

Machine some_machine() {
  Machine machine;
  machine.devices_per_node = 4;
  machine.device_flops = 1e12;
  machine.inside = {.latency = 1e-6, .seconds_per_byte = 1e-10};
  machine.between = {.latency = 1e-5, .seconds_per_byte = 1e-9};
  return machine;
}

TEST(Machine, AllreducesCostWhatTheirRoundsAndBytesDo) {
  const Machine machine = some_machine();
  EXPECT_EQ(machine.allreduce_seconds(1e6, 1), 0);
  EXPECT_NEAR(machine.allreduce_seconds(1e6, 2), 2 * (1e-6 + 0.5 * 1e-4), 1e-12);
  const double inside = 2 * (2 * 1e-6 + 0.75 * 1e-4);
  EXPECT_NEAR(machine.allreduce_seconds(1e6, 4), inside, 1e-12);
  EXPECT_NEAR(machine.allreduce_seconds(1e6, 32), inside + 2 * (3 * 1e-5 + 0.875 * 1e-3), 1e-12);
}

TEST(Machine, MessagesShareTheLinkOfTheirNode) {
  const Machine machine = some_machine();
  EXPECT_EQ(machine.message_seconds(1e6, 3, 3), 0);
  EXPECT_NEAR(machine.message_seconds(1e6, 0, 3), 1e-6 + 1e-4, 1e-12);
  EXPECT_NEAR(machine.message_seconds(1e6, 0, 4), 1e-5 + 1e-3, 1e-12);
  EXPECT_NEAR(machine.message_seconds(1e6, 0, 4, 4), 1e-5 + 4e-3, 1e-12);
}

TEST(Machine, ATaperedTreeIsSlowerBeyondOneSwitch) {
  Machine machine = some_machine();
  machine.nodes_per_switch = 2;
  machine.oversubscription = 3;
  EXPECT_EQ(machine.allreduce_seconds(1e6, 8), some_machine().allreduce_seconds(1e6, 8));
  EXPECT_NEAR(machine.allreduce_seconds(1e6, 12) - some_machine().allreduce_seconds(1e6, 12),
              2 * (2.0 / 3) * 1e-3 * 2, 1e-9);
  // Nodes 1 and 2 are neighbours, but on two switches.
  EXPECT_NEAR(machine.message_seconds(1e6, 4, 8), 1e-5 + 3e-3, 1e-12);
  EXPECT_NEAR(machine.message_seconds(1e6, 0, 4), 1e-5 + 1e-3, 1e-12);
}

TEST(Machine, StepsTakeTheirFlopAndWhatMakesThemLate) {
  Machine machine = some_machine();
  machine.slow = {{.device = 2, .factor = 3}};
  EXPECT_DOUBLE_EQ(machine.compute_seconds(5e11, 0, 0, 1), 0.5);
  EXPECT_DOUBLE_EQ(machine.compute_seconds(5e11, 2, 0, 1), 1.5);
  machine.step_seconds = 0.2;
  EXPECT_DOUBLE_EQ(machine.compute_seconds(5e11, 0, 0, 1), 0.2);
  machine.measured = true;
  EXPECT_DOUBLE_EQ(machine.compute_seconds(5e11, 2, 0, 1, 0.1), 0.1 * 3);
}

TEST(Machine, ChanceKeepsTheMeanAndFollowsFromTheSeed) {
  Machine machine = some_machine();
  machine.sigma = 0.3;
  constexpr int kSteps = 20000;
  double sum = 0, squares = 0;
  for (int step = 0; step < kSteps; ++step) {
    const double seconds = machine.compute_seconds(1e12, 1, step, 7);
    EXPECT_EQ(seconds, machine.compute_seconds(1e12, 1, step, 7));
    sum += seconds;
    squares += std::log(seconds) * std::log(seconds);
  }
  EXPECT_NEAR(sum / kSteps, 1, 0.01);
  EXPECT_NEAR(std::sqrt(squares / kSteps), 0.3034, 0.01);  // the mean of the logarithm is -0.045
  EXPECT_NE(machine.compute_seconds(1e12, 1, 0, 7), machine.compute_seconds(1e12, 2, 0, 7));
  EXPECT_NE(machine.compute_seconds(1e12, 1, 0, 7), machine.compute_seconds(1e12, 1, 0, 8));
}

}  // namespace
}  // namespace tutti::comm
