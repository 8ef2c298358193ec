#include "tutti/plan/run/number_block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tutti/device/emulated/emulated_device.h"

namespace tutti::plan {
namespace {

/// Copies the block away after each send, long before anything happens.
std::vector<int64_t> sent_in_a_row(uint64_t seed, int count) {
  const auto device = device::make_emulated_device({.seed = seed});
  const auto stream = device->make_stream("numbers");
  NumberBlock block(*device, 2 * sizeof(int64_t));
  const auto bytes = sizeof(int64_t);
  const device::Memory seen(*device, static_cast<size_t>(count) * bytes,
                            device::MemoryKind::pinned);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t numbers[2] = {-1, i};
    std::memcpy(block.open(), numbers, sizeof numbers);
    block.send(*stream, bytes, 2 * bytes);
    stream->copy(seen.data() + static_cast<size_t>(i) * bytes, block.data() + bytes, bytes);
  }
  device::settle(*device, *stream, "the numbers");
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::memcpy(values.data(), seen.data(), seen.bytes());
  return values;
}

TEST(NumberBlock, KeepsWhatTheDeviceHasNotTakenYet) {
  std::vector<int64_t> want;
  for (int64_t i = 0; i < 20; ++i) want.push_back(i);
  for (uint64_t seed = 0; seed < 5; ++seed) EXPECT_EQ(sent_in_a_row(seed, 20), want) << seed;
}

}  // namespace
}  // namespace tutti::plan
