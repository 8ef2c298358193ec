#include <gtest/gtest.h>

#include "tutti/base/expect_text.h"
#include "tutti/device/emulated/test_device.h"
#include "tutti/device/emulated/test_kernels.h"

namespace tutti::device {
namespace {

using namespace test_kernels;

/// Expects an error of the kernel that does this, with these parts under each of several seeds.
void expect_fault(Fault fault, const std::vector<std::string>& parts,
                  const DeviceFunction& function = kDoWrong) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    TestDevice d(seed);
    const Floats memory = d.floats(4);
    float host = 0;
    if (fault == Fault::beyond_end) d.device->count_sectors();
    launch(*d.compute, function, {1}, FaultArgs{fault, memory.data(), &host});
    EXPECT_TRUE(throws<DeviceError>(parts, [&] { d.wait(*d.compute); })) << "seed " << seed;
    EXPECT_EQ(host, 0);
  }
}

TEST(KernelFaults, ABarrierThatSomeThreadsDoNotReach) {
  expect_fault(Fault::barrier_of_some,
               {"kernel do_wrong, block (0, 0, 0)", "of 64 threads some wait",
                "48 are at the barrier of line ", "(from thread 0 on)", "16 have ended",
                "(from thread 48 on)"});
}

TEST(KernelFaults, TwoBarriersThatAreReachedByHalfTheThreads) {
  expect_fault(Fault::two_barriers,
               {"32 are at the barrier of line ", "(from thread 0 on)", "(from thread 32 on)"});
}

TEST(KernelFaults, MasksOfShuffles) {
  expect_fault(Fault::mask_without_itself, {"thread ", "leaves out the thread's own lane"});
  expect_fault(Fault::mask_without_source, {"leaves out lane ", "which the thread reads"});
  expect_fault(Fault::different_masks, {"a shuffle of 4 bytes with mask 0x", "meets one of"});
  expect_fault(Fault::mask_of_ended, {"mask 0xffffffff"});
}

TEST(KernelFaults, SharedMemory) {
  expect_fault(Fault::much_shared_memory, {"52000 bytes of shared memory, of at most 49152"});
}

TEST(KernelFaults, Addresses) {
  expect_fault(Fault::odd_address, {"an access of 8 bytes at 0x", "no multiple of 8"});
  expect_fault(Fault::memory_of_host, {"an access of 4 bytes", "not within memory of the device"});
  expect_fault(Fault::beyond_end, {"an access of 4 bytes", "memory of the device that is in use"});
}

TEST(KernelFaults, FlatKernelsMustNotMeet) {
  expect_fault(Fault::barrier_of_some, {"a barrier in a kernel that is said to be flat"},
               kFlatDoWrong);
  expect_fault(Fault::mask_of_ended, {"a shuffle in a kernel that is said to be flat"},
               kFlatDoWrong);
  expect_fault(Fault::much_shared_memory, {"shared memory in a kernel that is said to be flat"},
               kFlatDoWrong);
}

TEST(KernelFaults, ADeviceRunsKernelsAfterOneFailedOnAnother) {
  // Threads that were left in the middle of a kernel must not go on with it.
  for (int turn = 0; turn < 2; ++turn) {
    expect_fault(Fault::barrier_of_some, {"16 have ended"});
    TestDevice d(1);
    const Floats x = d.floats_of(std::vector<float>(kThreads, 1.0f)), sum = d.floats(1);
    launch(*d.compute, kSumRows, {1}, RowArgs{x.data(), sum.data(), kThreads});
    EXPECT_EQ(d.values(sum)[0], kThreads);
  }
}

TEST(KernelFaults, LaunchesThatNoDeviceAccepts) {
  TestDevice d(1);
  const Floats y = d.floats(1);
  const auto refused = [&](DeviceFunction function, Dim3 grid, const std::string& text) {
    const LastArgs args{y.data()};
    EXPECT_TRUE(throws<DeviceError>({"kernel last_block", text}, [&] {
      d.compute->launch({&function, grid, &args});
    }));
  };
  DeviceFunction function = kLastBlock;
  refused(function, {0}, "a grid of 0 x 1 x 1 blocks");
  refused(function, {0x80000000u}, "a grid of 2147483648 x 1 x 1 blocks");
  refused(function, {1, 65536}, "a grid of 1 x 65536 x 1 blocks");
  refused(function, {1, 1, 65536}, "a grid of 1 x 1 x 65536 blocks");
  function.threads = 1025;
  refused(function, {1}, "1025 threads a block, not 1 to 1024");
  function.threads = 32;
  function.argument_bytes = kMostArgumentBytes + 1;
  refused(function, {1}, "4097 bytes of arguments, of at most 4096");
  EXPECT_THROW(launch(*d.compute, kLastBlock, {1}, 0), InternalError) << "other arguments";
}

}  // namespace
}  // namespace tutti::device
