#include "tutti/device/emulated/emulated_memory.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <optional>

#include "tutti/base/expect_text.h"
#include "tutti/device/emulated/test_device.h"

namespace tutti::device {
namespace {

constexpr size_t kBytes = 10000;
// A sanitizer that handles faults itself says it in its own words.
constexpr const char* kTouched =
    "host code touches memory of the emulated device|Sanitizer:(DEADLYSIGNAL| SEGV)";

TEST(EmulatedMemory, PiecesAreAlignedApartAndFull) {
  EmulatedMemory memory(kBytes);
  std::byte* const a = memory.allocate(1, MemoryKind::device);
  std::byte* const b = memory.allocate(300, MemoryKind::device);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 256, 0u);
  EXPECT_GE(b, a + 256);
  memory.open();
  for (size_t i = 0; i < 300; ++i) EXPECT_EQ(b[i], std::byte{0xFF});
  memory.close();
  std::byte* const pinned = memory.allocate(300, MemoryKind::pinned);
  for (size_t i = 0; i < 300; ++i) EXPECT_EQ(pinned[i], std::byte{0xFF});
  EXPECT_EQ(memory.bytes_in_use(), 301u) << "pinned memory is the host's";
}

TEST(EmulatedMemory, IsUsedAgainFromTheFirstGapThatIsLargeEnough) {
  EmulatedMemory memory(kBytes);
  std::byte* const a = memory.allocate(1000, MemoryKind::device);
  std::byte* const b = memory.allocate(2000, MemoryKind::device);
  std::byte* const c = memory.allocate(1000, MemoryKind::device);
  memory.open();
  std::memset(b, 0, 2000);
  memory.close();
  memory.release(b, MemoryKind::device);
  EXPECT_GT(memory.allocate(2500, MemoryKind::device), c);
  EXPECT_EQ(memory.allocate(500, MemoryKind::device), b);
  EXPECT_GT(memory.allocate(1000, MemoryKind::device), b);
  memory.open();
  for (size_t i = 0; i < 500; ++i) EXPECT_EQ(b[i], std::byte{0xFF}) << "as new memory is";
  memory.close();
  memory.release(a, MemoryKind::device);
  EXPECT_EQ(memory.bytes_in_use(), 5000u);
  EXPECT_EQ(memory.most_bytes_in_use(), 6000u);
  EXPECT_EQ(memory.free_bytes(), kBytes - 5000);
}

TEST(EmulatedMemory, HoldsWholePieces) {
  EmulatedMemory memory(kBytes);
  std::byte* const a = memory.allocate(1000, MemoryKind::device);
  std::byte* const b = memory.allocate(1000, MemoryKind::device);
  std::byte* const pinned = memory.allocate(1000, MemoryKind::pinned);
  EXPECT_TRUE(memory.holds(a, 1000));
  EXPECT_TRUE(memory.holds(b + 999, 1));
  EXPECT_TRUE(memory.holds(pinned + 10, 990));
  EXPECT_FALSE(memory.holds(a, 1001));
  EXPECT_FALSE(memory.holds(a + 1000, 1));
  EXPECT_FALSE(memory.holds(a + 999, static_cast<size_t>(b - a)));
  EXPECT_FALSE(memory.holds(pinned + 10, 991));
  EXPECT_FALSE(memory.holds(&memory, 1));
  memory.release(a, MemoryKind::device);
  EXPECT_FALSE(memory.holds(a, 1));
  memory.release(pinned, MemoryKind::pinned);
  EXPECT_FALSE(memory.holds(pinned, 1));
}

TEST(EmulatedMemory, TooMuchSaysHowMuchIsThere) {
  const auto device = make_emulated_device({.memory_bytes = kBytes});
  std::optional<Memory> a(std::in_place, *device, 4000);
  EXPECT_TRUE(throws<DeviceError>({"no memory for 6001 bytes", "6000 of 10000 bytes are free"},
                                  [&] { Memory(*device, 6001); }));
  const Memory b(*device, 6000);
  EXPECT_EQ(device->free_bytes(), 0u);
  a.reset();
  EXPECT_EQ(device->counts().bytes, 6000u);
  EXPECT_EQ(device->counts().most_bytes, kBytes);
  const Memory c(*device, 4000);
}

TEST(EmulatedMemoryDeathTest, HostCodeMustNotTouchIt) {
  EXPECT_DEATH(
      {
        TestDevice d(1);
        const Floats x = d.floats_of({1.0f});
        const volatile float* const value = x.data();
        static_cast<void>(*value);
      },
      kTouched);
}

TEST(EmulatedMemoryDeathTest, NorMayHostWorkWhereItIsAsOnARealDevice) {
  const auto touch = [](bool reads) {
    TestDevice d({.memory_bytes = kBytes, .host_work_reads_memory = reads});
    const Floats x = d.floats_of({1.0f});
    d.compute->fill(x.data(), std::byte{0}, 4);  // which opens the memory
    d.compute->host(calling([&] { x.data()[0] = 2; }));
    d.wait(*d.compute);
    std::exit(d.values(x)[0] == 2 ? 0 : 1);
  };
  EXPECT_DEATH(touch(false), kTouched);
  EXPECT_EXIT(touch(true), testing::ExitedWithCode(0), "");
}

void handle_fault(int) { _exit(7); }

TEST(EmulatedMemoryDeathTest, AProgramMayHandleFaultsItself) {
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, handle_fault);
        TestDevice d(1);
        const Floats x = d.floats_of({1.0f});
        x.data()[0] = 2;
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace tutti::device
