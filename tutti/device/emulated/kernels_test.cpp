#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "tutti/device/emulated/test_device.h"
#include "tutti/device/emulated/test_kernels.h"
#include "tutti/tensor/dtype.h"

namespace tutti::device {
namespace {

using namespace test_kernels;

constexpr uint64_t kSeeds = 6;  // 0 is the natural order

TEST(EmulatedKernels, EveryThreadOfTheGridRunsOnce) {
  constexpr Dim3 kGrid{7, 3, 2};
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const DeviceFunction& function : {kCountRuns, kCountRunsByFibers}) {
      TestDevice d(seed);
      const std::vector<float> zeros(size_t{80} * 7 * 3 * 2, 0.0f), ones(zeros.size(), 1.0f);
      const Floats runs = d.floats_of(zeros);
      launch(*d.compute, function, kGrid, CountArgs{runs.data()});
      EXPECT_EQ(d.values(runs), ones) << "seed " << seed << (function.flat ? ", flat" : "");
    }
}

/// Returns the sums of rows by one of the kernels.
std::vector<float> row_sums(uint64_t seed, const DeviceFunction& function) {
  constexpr int kRows = 20, kColumns = 700;
  std::vector<float> x(size_t{kRows} * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  TestDevice d(seed);
  const Floats device_x = d.floats_of(x), sums = d.floats(kRows);
  launch(*d.compute, function, {kRows}, RowArgs{device_x.data(), sums.data(), kColumns});
  return d.values(sums);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(EmulatedKernels, SumsOfBlocksHaveTheSameBitsInAnyOrder) {
  const std::vector<float> natural = row_sums(0, kSumRows);
  for (size_t row = 0; row < natural.size(); ++row) {
    double exact = 0;
    for (size_t i = 700 * row; i < 700 * (row + 1); ++i) exact += std::sin(static_cast<float>(i));
    EXPECT_NEAR(natural[row], exact, 1e-4) << "row " << row;
  }
  for (uint64_t seed = 1; seed < kSeeds; ++seed)
    EXPECT_TRUE(same_bits(row_sums(seed, kSumRows), natural)) << "seed " << seed;
}

TEST(EmulatedKernels, AMissingBarrierShowsUnderEverySeed) {
  const std::vector<float> right = row_sums(0, kSumRows);
  for (uint64_t seed = 1; seed < kSeeds; ++seed)
    EXPECT_FALSE(same_bits(row_sums(seed, kSumRowsRacing), right)) << "seed " << seed;
}

constexpr int kSummedBlocks = 30;

/// Returns the sum of all numbers by two launches of one of the kernels.
std::vector<float> sum_of_all(uint64_t seed, const DeviceFunction& function) {
  std::vector<float> x(size_t{kThreads} * kSummedBlocks);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  TestDevice d(seed);
  const Floats device_x = d.floats_of(x), parts = d.floats(kSummedBlocks), sum = d.floats(1),
               counter = d.floats_of({0.0f});
  const EndArgs args{device_x.data(), parts.data(), sum.data(),
                     reinterpret_cast<unsigned*>(counter.data())};
  std::vector<float> sums;
  for (int turn = 0; turn < 2; ++turn) {
    launch(*d.compute, function, {kSummedBlocks}, args);
    sums.push_back(d.values(sum)[0]);
    d.compute->fill(parts.data(), std::byte{0xFF}, kSummedBlocks * sizeof(float));  // NaN
  }
  EXPECT_EQ(d.values(counter)[0], 0);
  return sums;
}

TEST(EmulatedKernels, TheBlockThatComesLastEndsASum) {
  const std::vector<float> natural = sum_of_all(0, kSumAll);
  double exact = 0;
  for (size_t i = 0; i < size_t{kThreads} * kSummedBlocks; ++i)
    exact += std::sin(static_cast<float>(i));
  for (const float sum : natural) EXPECT_NEAR(sum, exact, 1e-3);
  for (uint64_t seed = 1; seed < kSeeds; ++seed)
    EXPECT_TRUE(same_bits(sum_of_all(seed, kSumAll), natural)) << "seed " << seed;
}

TEST(EmulatedKernels, ABlockThatEndsTooEarlyShows) {
  const std::vector<float> right = sum_of_all(0, kSumAll);
  for (uint64_t seed = 1; seed < kSeeds; ++seed)
    EXPECT_FALSE(same_bits(sum_of_all(seed, kSumAllEarly), right)) << "seed " << seed;
}

TEST(EmulatedKernels, RunOnWhicheverThreadWaits) {
  TestDevice d(1);
  const Floats x = d.floats_of(std::vector<float>(kThreads, 1.0f)), sum = d.floats(1);
  for (int turn = 0; turn < 3; ++turn) {
    std::thread([&] {
      launch(*d.compute, kSumRows, {1}, RowArgs{x.data(), sum.data(), kThreads});
      EXPECT_EQ(d.values(sum)[0], kThreads);
    }).join();
  }
}

TEST(EmulatedKernels, ASeedRepeatsEverything) {
  EXPECT_TRUE(same_bits(row_sums(3, kSumRowsRacing), row_sums(3, kSumRowsRacing)));
}

TEST(EmulatedKernels, LanesExchangeValues) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    TestDevice d(seed);
    const Floats sum = d.floats(32), above = d.floats(32), fifth = d.floats(32);
    launch(*d.compute, kExchangeLanes, {1}, LaneArgs{sum.data(), above.data(), fifth.data()});
    const auto sums = d.values(sum), aboves = d.values(above), fifths = d.values(fifth);
    for (size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(sums[i], 31.0f * 16);
      EXPECT_EQ(aboves[i], static_cast<float>(i < 30 ? i + 2 : i));
      EXPECT_EQ(fifths[i], i < 16 ? 5.0f : 21.0f);
    }
  }
}

TEST(EmulatedKernels, PacksOfBf16AreReadRoundedAndWritten) {
  constexpr size_t kCount = size_t{2} * kThreads * 8;
  TestDevice d(1);
  std::vector<tutti::bf16> x(kCount), y(kCount);
  for (size_t i = 0; i < kCount; ++i) x[i] = tutti::bf16(std::sin(static_cast<float>(i)) * 100);
  x[3] = tutti::bf16(NAN);
  const Memory device_x(*d.device, kCount * 2), device_y(*d.device, kCount * 2);
  d.mirrors.to_device(device_x.data(), reinterpret_cast<std::byte*>(x.data()), kCount * 2,
                      *d.compute);
  launch(*d.compute, kAddOne, {2},
         PackArgs{reinterpret_cast<backend::bf16*>(device_x.data()),
                  reinterpret_cast<backend::bf16*>(device_y.data())});
  d.mirrors.to_host(reinterpret_cast<std::byte*>(y.data()), device_y.data(), kCount * 2,
                    *d.compute);
  for (size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(y[i].bits, tutti::bf16(static_cast<float>(x[i]) + 1).bits) << i;
}

/// Returns the results of a kernel of which the last one to write decides, over some seeds.
std::set<float> last_written(const DeviceFunction& function, unsigned blocks) {
  std::set<float> results;
  for (uint64_t seed = 1; seed < 2 * kSeeds; ++seed) {
    TestDevice d(seed);
    const Floats last = d.floats(1);
    launch(*d.compute, function, {blocks}, LastArgs{last.data()});
    results.insert(d.values(last)[0]);
  }
  return results;
}

TEST(EmulatedKernels, BlocksAndThreadsHaveNoOrder) {
  EXPECT_GT(last_written(kLastBlock, 1000).size(), 1u);
  EXPECT_GT(last_written(kLastThread, 1).size(), 4u);
}

TEST(EmulatedKernels, SharedMemoryBeginsAsNanInEveryBlock) {
  TestDevice d(1);
  const Floats read = d.floats_of(std::vector<float>(size_t{3} * 32, 0.0f));
  launch(*d.compute, kReadUnwritten, {3}, LastArgs{read.data()});
  for (const float value : d.values(read)) EXPECT_TRUE(std::isnan(value));
}

TEST(EmulatedKernels, SectorsShowHowWellAccessesAreCombined) {
  constexpr int kSide = 128;
  constexpr auto kBytes = int64_t{2} * kSide * kSide * 4;  // read and written
  TestDevice d(1);
  const Floats x = d.floats_of(std::vector<float>(kSide * kSide, 1.0f)), y = d.floats(x.count());
  const SquareArgs args{x.data(), y.data(), kSide};
  launch(*d.compute, kCopySquare, {kSide * kSide / kThreads / 4}, args);
  d.wait(*d.compute);
  EXPECT_EQ(d.device->sectors().sectors, 0) << "nobody has asked for them";

  d.device->count_sectors();
  launch(*d.compute, kCopySquare, {kSide * kSide / kThreads / 4}, args);
  d.wait(*d.compute);
  EXPECT_EQ(d.device->sectors().bytes, kBytes);
  EXPECT_EQ(d.device->sectors().sectors * SectorCounts::kBytes, kBytes);

  d.device->count_sectors();
  launch(*d.compute, kTransposeSquare, {kSide * kSide / kThreads}, args);
  d.wait(*d.compute);
  EXPECT_EQ(d.device->sectors().bytes, kBytes);
  // Each number that is written moves a sector of eight.
  EXPECT_EQ(d.device->sectors().sectors * SectorCounts::kBytes, kBytes / 2 + kBytes / 2 * 8);
}

TEST(EmulatedKernels, AreFoundByName) {
  const std::vector<DeviceFunction> list = {kAxpy, kAddOne};
  const auto device = make_emulated_device({.functions = list});
  EXPECT_EQ(&function_named(*device, "add_one"), &list[1]);
  EXPECT_THROW(function_named(*device, "none"), InternalError);
}

}  // namespace
}  // namespace tutti::device
