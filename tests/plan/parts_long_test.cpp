// Tests ranks that share samples, at sizes where four parts are multiples of all strides: CosmoFlow
// as in MLPerf HPC, DeepCAM with few channels. Takes minutes.

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include <fmt/format.h>

#include "tests/plan/parts_check.h"

namespace tutti::test {
namespace {

struct WideCase {
  const char* name;
  const char* network;
  Rectifiers rectifiers = Rectifiers::relu;
  int64_t batch = 1;
  double gradients = 1e-4;  ///< bound of each one's difference

  bool deepcam() const { return std::string_view(network).starts_with("deepcam"); }
};

/// DeepCAM's ReLUs flip with the last bits of sums. A flip at one of its smallest maps'
/// positions, of which there are 48 in a channel, moves gradients by percents, so with free ReLUs
/// the bound is wide; where nothing can flip, the same bound as elsewhere applies. With GELUs the
/// batch is 2, because in a batch of 1 the batch norm removes the contribution of the branch behind
/// the global average, so that branch has no gradient.
const WideCase kWideCases[] = {
    {.name = "cosmoflow2", .network = "cosmoflow2-full"},
    {.name = "cosmoflow3", .network = "cosmoflow3-full"},
    {.name = "deepcam", .network = "deepcam-wide", .gradients = 5e-2},
    {.name = "deepcam_seen",
     .network = "deepcam-wide",
     .rectifiers = Rectifiers::seen,
     .gradients = 5e-2},
    {.name = "deepcam_held", .network = "deepcam-wide", .rectifiers = Rectifiers::held},
    {.name = "deepcam_gelu", .network = "deepcam-wide", .rectifiers = Rectifiers::gelu, .batch = 2},
};

class Wide : public testing::TestWithParam<WideCase> {};

/// ReLUs whose own decisions are fixed beforehand make the same network.
void expect_same_network(const std::vector<ScienceStep>& seen,
                         const std::vector<ScienceStep>& held) {
  for (size_t r = 0; r < seen.size(); ++r) {
    EXPECT_LT(far(held[r].out, seen[r].out), 1e-5);
    for (size_t i = 0; i < seen[r].gradients.size(); ++i) {
      const keep::NamedTensor& want = seen[r].gradients[i];
      if (is_zero(numbers_of(want))) continue;
      EXPECT_LT(far(held[r].gradients[i], want), 1e-4) << want.name;
    }
  }
}

/// Compares, and prints the differences. Flips may occur only where a result is next to 0.
void expect_near(const WideCase& c, const Parts& parts, const std::vector<ScienceStep>& got,
                 const std::vector<ScienceStep>& serial) {
  std::string seen;
  double bound = c.gradients;
  if (c.rectifiers == Rectifiers::seen) {
    const Flips flipped = flips(parts, got, serial);
    if (flipped.count == 0) bound = 1e-4;
    EXPECT_LE(flipped.count, flipped.of / 20'000) << parts.text();
    EXPECT_LT(flipped.largest, 1e-4f) << parts.text();
    seen = fmt::format("; {} of {} ReLUs flipped, at results up to {:.1e}", flipped.count,
                       flipped.of, flipped.largest);
  }
  const PartsDistance d = expect_serial(parts, got, serial, bound);
  const bool no_branch = c.deepcam() && c.batch == 1;
  for (const std::string& name : d.zero)
    EXPECT_TRUE(no_branch && name.starts_with("bottleneck.global_avg_pool.")) << name;
  std::cout << fmt::format(
                   "{}: loss {:.1e}, out {:.1e}, gradients {:.1e} ({}), {} zero, statistics "
                   "{:.1e}{}",
                   parts.text(), d.loss, d.out, d.gradient, d.farthest, d.zero.size(), d.model,
                   seen)
            << std::endl;
}

TEST_P(Wide, EqualsTheSerialStepEachTime) {
  const WideCase& c = GetParam();
  Parts parts{.network = c.network, .spatial = {}, .replicas = 2, .slabs = 0, .batch = c.batch};
  if (c.rectifiers == Rectifiers::held) {
    parts.rectifiers = Rectifiers::seen;
    parts.held = serial_steps(parts);
  }
  parts.rectifiers = c.rectifiers;
  const std::vector<ScienceStep> serial = serial_steps(parts);
  if (c.rectifiers == Rectifiers::held) expect_same_network(parts.held, serial);
  if (c.deepcam()) {
    std::cout << "One rank a replica in two slabs, without any exchange: ";
    expect_near(c, parts, serial_steps(parts, 2), serial);
  }
  for (const std::vector<int64_t>& spatial :
       {std::vector<int64_t>{2}, std::vector<int64_t>{4}, std::vector<int64_t>{2, 2}})
    for (const int replicas : {1, 2}) {
      parts.spatial = spatial;
      parts.replicas = replicas;
      const auto begin = std::chrono::steady_clock::now();
      const std::vector<ScienceStep> once = part_steps(parts);
      expect_near(c, parts, once, serial);
      const bool same = expect_same_bits(parts, once, part_steps(parts));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      std::cout << fmt::format("  {}; {:.0f} s", same ? "same bits" : "OTHER BITS", took.count())
                << std::endl;
    }
}

INSTANTIATE_TEST_SUITE_P(Networks, Wide, testing::ValuesIn(kWideCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tutti::test
