#include "tutti/train/loop/job_time.h"

#include <gtest/gtest.h>

#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::train {
namespace {

TEST(JobTime, WhatRanksShareIsCountedOnce) {
  const device::MachineWatch watch;
  const device::ProcessorTime before = watch.so_far();
  std::vector<device::ProcessorTime> found(3);
  comm::run_ranks(3, [&](comm::Communicator& communicator) {
    found[static_cast<size_t>(communicator.rank())] = processor_time_of_job(communicator, watch);
  });
  const device::ProcessorTime after = watch.so_far();
  constexpr double kRounding = 1e-9;  // rounding in the sum of thirds
  for (const device::ProcessorTime& job : found)
    // The kernel may let its counts of idle time fall a little; these only grow.
    for (const auto part : {&device::ProcessorTime::busy, &device::ProcessorTime::own,
                            &device::ProcessorTime::seconds}) {
      EXPECT_GE(job.*part, before.*part - kRounding);
      EXPECT_LE(job.*part, after.*part + kRounding);
    }
}

}  // namespace
}  // namespace tutti::train
