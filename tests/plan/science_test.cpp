// CosmoFlow and DeepCAM on plans of the CPU backend against the reference's.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/plan/science_step.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/reference/reference.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::test {
namespace {

std::span<const float> numbers_of(const NamedTensor& t) {
  return {reinterpret_cast<const float*>(t.bytes.data()), t.bytes.size() / sizeof(float)};
}

/// Relative distance in the 2-norm.
double far(std::span<const float> a, std::span<const float> b) {
  double apart = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double x = a[i], y = b[i];
    apart += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(apart) / (std::sqrt(size) + 1e-6);
}

double far(const NamedTensor& a, const NamedTensor& b) { return far(numbers_of(a), numbers_of(b)); }

class Science : public testing::TestWithParam<const char*> {};

TEST_P(Science, CpuPlansAgreeWithTheReference) {
  const ScienceNetwork network = science_network(GetParam(), DType::f32, 2);
  const ScienceStep want =
      run_step(network, ReferenceBackend(),
               {.layout = "plain", .tile_bytes = size_t{1} << 40, .measure = false});
  for (const char* layout : {"b16c", "last"}) {
    const ScienceStep got =
        run_step(network, CpuBackend(), {.threads = 2, .layout = layout, .measure = false});
    EXPECT_NEAR(numbers_of(got.loss)[0], numbers_of(want.loss)[0], 1e-4) << layout;
    EXPECT_LT(far(got.out, want.out), 1e-4) << layout;
    ASSERT_EQ(got.gradients.size(), want.gradients.size());
    for (size_t i = 0; i < got.gradients.size(); ++i)
      EXPECT_LT(far(got.gradients[i], want.gradients[i]), 3e-3)
          << want.gradients[i].name << " " << layout;
  }
}

TEST_P(Science, SlabsComputeTheSame) {
  const PlanOptions plain{.layout = "plain", .tile_bytes = size_t{1} << 40, .measure = false};
  const ScienceStep want =
      run_step(science_network(GetParam(), DType::f32, 2), ReferenceBackend(), plain);
  const ScienceStep oracle =
      run_step(science_network(GetParam(), DType::f32, 2, {.slabs = 2}), ReferenceBackend(), plain);
  for (size_t i = 0; i < oracle.gradients.size(); ++i)
    EXPECT_LT(far(oracle.gradients[i], want.gradients[i]), 1e-3) << want.gradients[i].name;
  for (const int64_t slabs : {2, 4}) {
    const ScienceNetwork cut = science_network(GetParam(), DType::f32, 2, {.slabs = slabs});
    for (const char* layout : {"plain", "b16c", "last"}) {
      const std::string what = fmt::format("{} slabs, {}", slabs, layout);
      const ScienceStep got = run_step(
          cut, CpuBackend(), {.threads = 2, .layout = layout, .tile_bytes = 1, .measure = false});
      EXPECT_NEAR(numbers_of(got.loss)[0], numbers_of(want.loss)[0], 1e-4) << what;
      EXPECT_LT(far(got.out, want.out), 1e-4) << what;
      for (size_t i = 0; i < got.gradients.size(); ++i)
        EXPECT_LT(far(got.gradients[i], want.gradients[i]), 3e-3)
            << want.gradients[i].name << " " << what;
    }
  }
}

/// Sums of loss and gradients over the parts of a grid, against one rank's.
TEST_P(Science, PartsComputeTheSame) {
  const PlanOptions options{.layout = "b16c", .measure = false};
  const CpuBackend backend;
  const ScienceStep want = run_step(science_network(GetParam(), DType::f32, 2), backend, options);
  const std::vector<std::vector<int64_t>> grids{{2}, {4}, {3}, {2, 2}};
  for (const std::vector<int64_t>& spatial : grids) {
    const auto ranks = static_cast<int>(
        std::accumulate(spatial.begin(), spatial.end(), int64_t{1}, std::multiplies<>()));
    const std::string what = fmt::format("parts {}", fmt::join(spatial, "x"));
    std::vector<ScienceStep> got(static_cast<size_t>(ranks));
    comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
      const PartGrid grid(spatial, 1, ranks, communicator.rank());
      got[static_cast<size_t>(communicator.rank())] =
          run_part(science_network(GetParam(), DType::f32, 2, {.slabs = 2, .grid = grid}), backend,
                   options, grid, communicator);
    });
    double loss = 0;
    for (const ScienceStep& part : got) {
      loss += static_cast<double>(numbers_of(part.loss)[0]);
      EXPECT_LT(far(part.out, want.out), 1e-4) << what;
    }
    EXPECT_NEAR(loss, numbers_of(want.loss)[0], 1e-5) << what;
    for (size_t i = 0; i < want.gradients.size(); ++i) {
      std::vector<float> sum(numbers_of(want.gradients[i]).size());
      for (const ScienceStep& part : got)
        for (size_t k = 0; k < sum.size(); ++k) sum[k] += numbers_of(part.gradients[i])[k];
      EXPECT_LT(far(sum, numbers_of(want.gradients[i])), 3e-3)
          << want.gradients[i].name << " " << what;
    }
    for (size_t i = 0; i < want.model.size(); ++i)
      EXPECT_LT(far(got.back().model[i], want.model[i]), 1e-4) << want.model[i].name << " " << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Science, testing::Values("cosmoflow2", "deepcam"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tutti::test
