#include "tests/plan/parts_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::test {
namespace {

/// Of each rank.
std::vector<ScienceStep> run_parts(const Parts& parts) {
  const CpuBackend backend;
  std::vector<ScienceStep> got(static_cast<size_t>(parts.ranks()));
  comm::run_ranks(parts.ranks(), [&](comm::Communicator& communicator) {
    const PartGrid grid(parts.spatial, 1, parts.ranks(), communicator.rank());
    got[static_cast<size_t>(communicator.rank())] =
        run_part(science_network(parts.network, DType::f32, parts.batch,
                                 {.slabs = parts.slabs, .grid = grid}),
                 backend, parts_options(), grid, communicator);
  });
  return got;
}

using TensorOf = std::function<const NamedTensor&(const ScienceStep&)>;

/// Over the steps of all ranks, in the mean over replicas.
std::vector<float> sum_of(const std::vector<ScienceStep>& steps, int replicas,
                          const TensorOf& tensor) {
  std::vector<float> sum(numbers_of(tensor(steps.front())).size());
  for (const ScienceStep& step : steps)
    for (size_t k = 0; k < sum.size(); ++k)
      sum[k] += numbers_of(tensor(step))[k] / static_cast<float>(replicas);
  return sum;
}

}  // namespace

int Parts::ranks() const {
  return static_cast<int>(
             std::accumulate(spatial.begin(), spatial.end(), int64_t{1}, std::multiplies<>())) *
         replicas;
}

std::string Parts::text() const {
  return fmt::format("{} on {} parts x {} replica(s)", network, fmt::join(spatial, "x"), replicas);
}

PlanOptions parts_options() { return {.layout = "b16c", .measure = false}; }

void expect_serial(const Parts& parts, double gradients) {
  const CpuBackend backend;
  const ScienceNetwork serial = science_network(parts.network, DType::f32, parts.batch);
  std::vector<ScienceStep> want;
  for (int r = 0; r < parts.replicas; ++r)
    want.push_back(run_step(serial, backend, parts_options(), static_cast<uint64_t>(r)));
  const std::vector<ScienceStep> got = run_parts(parts);
  for (size_t r = 0; r < got.size(); ++r)
    EXPECT_LT(far(got[r].out, want[r / (got.size() / want.size())].out), 1e-4) << parts.text();
  const auto apart = [&](const TensorOf& tensor) {
    return far(sum_of(got, parts.replicas, tensor), sum_of(want, parts.replicas, tensor));
  };
  const TensorOf loss = [](const ScienceStep& step) -> const NamedTensor& { return step.loss; };
  EXPECT_NEAR(sum_of(got, parts.replicas, loss)[0], sum_of(want, parts.replicas, loss)[0], 1e-5)
      << parts.text();
  for (size_t i = 0; i < want.front().gradients.size(); ++i)
    EXPECT_LT(
        apart([i](const ScienceStep& step) -> const NamedTensor& { return step.gradients[i]; }),
        gradients)
        << want.front().gradients[i].name << " of " << parts.text();
  for (size_t i = 0; i < want.back().model.size(); ++i)
    EXPECT_LT(far(got.back().model[i], want.back().model[i]), 1e-4)
        << want.back().model[i].name << " of " << parts.text();
}

void expect_same_bits(const Parts& parts) {
  const std::vector<ScienceStep> once = run_parts(parts), again = run_parts(parts);
  for (size_t r = 0; r < once.size(); ++r) {
    EXPECT_EQ(once[r].loss.bytes, again[r].loss.bytes) << parts.text();
    for (size_t i = 0; i < once[r].gradients.size(); ++i)
      EXPECT_EQ(once[r].gradients[i].bytes, again[r].gradients[i].bytes)
          << once[r].gradients[i].name << " of " << parts.text();
  }
}

}  // namespace tutti::test
