// Tests ranks that share samples, on small networks.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/parts_check.h"
#include "tests/plan/rectifiers.h"
#include "tutti/backend/cpu/cpu_backend.h"

namespace tutti::test {
namespace {

class Shared : public testing::TestWithParam<const char*> {};

const std::vector<std::vector<int64_t>> kSpatial{{2}, {4}, {3}, {2, 2}};

TEST_P(Shared, ComputesTheSame) {
  const std::vector<ScienceStep> serial = serial_steps({.network = GetParam(), .spatial = {}});
  for (const std::vector<int64_t>& spatial : kSpatial) {
    const Parts parts{.network = GetParam(), .spatial = spatial};
    expect_serial(parts, part_steps(parts), serial, kFlipped);
  }
}

/// With decisions fixed beforehand, ReLUs hide no fault behind their flips.
TEST_P(Shared, ComputesTheSameWhereNothingFlips) {
  Parts parts{.network = GetParam(), .spatial = {}, .rectifiers = Rectifiers::seen};
  parts.held = serial_steps(parts);
  parts.rectifiers = Rectifiers::held;
  const std::vector<ScienceStep> serial = serial_steps(parts);
  for (const std::vector<int64_t>& spatial : kSpatial) {
    parts.spatial = spatial;
    expect_serial(parts, part_steps(parts), serial, 3e-3);
  }
}

TEST_P(Shared, HasTheSameBitsEachTime) {
  const Parts parts{.network = GetParam(), .spatial = {2, 2}};
  expect_same_bits(parts, part_steps(parts), part_steps(parts));
}

INSTANTIATE_TEST_SUITE_P(Networks, Shared, testing::Values("cosmoflow2", "deepcam", "spectra"),
                         [](const auto& info) { return std::string(info.param); });

TEST(SharedRectifiers, ComputesTheSameWhereNothingFlips) {
  Parts parts{.network = "deepcam", .spatial = {2, 2}, .replicas = 2};
  parts.rectifiers = Rectifiers::gelu;
  EXPECT_TRUE(expect_serial(parts, 1e-4).zero.empty());
  parts.rectifiers = Rectifiers::seen;
  parts.held = serial_steps(parts);
  parts.rectifiers = Rectifiers::held;
  expect_serial(parts, 1e-4);
}

/// Inner slabs need no rows of other parts, so their tiles come before the wait.
TEST(SharedSlabs, ComputesInnerOnesBeforeItWaits) {
  const split::PartGrid grid({2}, 1, 2, 0);
  for (const Rectifiers rectifiers : {Rectifiers::relu, Rectifiers::gelu}) {
    const plan::Plan plan = plan::compile(
        science_network("cosmoflow2", DType::f32, 1, {.slabs = 4, .grid = grid}, rectifiers).graph,
        backend::CpuBackend(), parts_options());
    int some = 0;
    for (const plan::PlanBand& band : plan.bands) {
      if (band.early.empty()) continue;
      ++some;
      EXPECT_FALSE(band.waits.empty());
      EXPECT_EQ(std::ssize(band.early), band.samples);
      EXPECT_GT(std::ranges::count(band.early, true), 0);
      EXPECT_LT(std::ranges::count(band.early, true), band.samples);
    }
    EXPECT_GT(some, 0) << name_of(rectifiers);
  }
  // Nothing flips, so that a tile that ran too early shows.
  expect_serial(
      {.network = "cosmoflow2", .spatial = {2}, .slabs = 4, .rectifiers = Rectifiers::gelu}, 3e-3);
}

/// Without fast blocks, volumes are left out, because reference loops take ten times as long for
/// them as for images.
TEST(SharedBlocks, ComputesTheSameInBlocksOfChannels) {
  for (const std::string network : {"cosmoflow2", "deepcam"}) {
    if (!has_fast_blocks() && network == "cosmoflow2") continue;
    Parts parts{.network = network, .spatial = {2, 2}, .slabs = 1, .batch = 1};
    parts.rectifiers = Rectifiers::gelu;
    const std::vector<ScienceStep> serial = serial_steps(parts);  // channels last is fast
    parts.layout = "b16c";
    expect_serial(parts, part_steps(parts), serial, 3e-3);
  }
}

}  // namespace
}  // namespace tutti::test
