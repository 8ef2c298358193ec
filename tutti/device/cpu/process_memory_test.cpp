#include "tutti/device/cpu/process_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tutti/device/cpu/buffer.h"

namespace tutti::device {
namespace {

TEST(ProcessMemory, GrowsWithWhatIsWritten) {
  constexpr size_t kBytes = 64 << 20;
  const size_t before = proportional_bytes();
  if (before == 0) return;  // this kernel has no smaps_rollup
  Buffer buffer(kBytes);
  std::memset(buffer.data(), 1, kBytes);
  EXPECT_GE(proportional_bytes(), before + kBytes / 2);
  EXPECT_GE(peak_resident_bytes(), kBytes);
}

}  // namespace
}  // namespace tutti::device
