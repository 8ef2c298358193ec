// Ranks that share samples, at sizes where four parts are multiples of all strides: CosmoFlow as in
// MLPerf HPC, DeepCAM with few channels. Minutes.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include <fmt/format.h>

#include "tests/plan/parts_check.h"
#include "tutti/backend/cpu/cpu_backend.h"

namespace tutti::test {
namespace {

/// How far gradients may be. DeepCAM's ReLUs stand behind batch norms, whose sums round otherwise
/// when a sample is cut, and flip: one rank that cuts samples into slabs is as far from itself.
double bound_of(const std::string& network, const ScienceStep& serial) {
  if (!network.starts_with("deepcam")) return 1e-4;
  const ScienceStep cut = run_step(science_network(network, DType::f32, 1, {.slabs = 2}),
                                   CpuBackend(), parts_options());
  double apart = 0;
  for (size_t i = 0; i < cut.gradients.size(); ++i)
    apart = std::max(apart, far(cut.gradients[i], serial.gradients[i]));
  std::cout << fmt::format("{}: one rank in two slabs: gradients {:.1e}", network, apart)
            << std::endl;
  EXPECT_LT(apart, 5e-2);
  return std::max(1e-4, apart);
}

class Wide : public testing::TestWithParam<const char*> {};

TEST_P(Wide, EqualsTheSerialStepEachTime) {
  const std::vector<ScienceStep> serial = serial_steps(GetParam(), 1, 2);
  const double bound = bound_of(GetParam(), serial.front());
  for (const std::vector<int64_t>& spatial :
       {std::vector<int64_t>{2}, std::vector<int64_t>{4}, std::vector<int64_t>{2, 2}})
    for (const int replicas : {1, 2}) {
      const Parts parts{
          .network = GetParam(), .spatial = spatial, .replicas = replicas, .slabs = 0, .batch = 1};
      const auto begin = std::chrono::steady_clock::now();
      const std::vector<ScienceStep> once = part_steps(parts);
      const PartsDistance d = expect_serial(parts, once, serial, bound);
      const bool same = expect_same_bits(parts, once, part_steps(parts));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      std::cout << fmt::format(
                       "{}: loss {:.1e}, out {:.1e}, gradients {:.1e} ({}), statistics {:.1e}; {}; "
                       "{:.0f} s",
                       parts.text(), d.loss, d.out, d.gradient, d.farthest, d.model,
                       same ? "same bits" : "OTHER BITS", took.count())
                << std::endl;
    }
}

INSTANTIATE_TEST_SUITE_P(Networks, Wide,
                         testing::Values("cosmoflow2-full", "cosmoflow3-full", "deepcam-wide"),
                         [](const auto& info) {
                           std::string name(info.param);
                           return name.substr(0, name.find('-'));
                         });

}  // namespace
}  // namespace tutti::test
