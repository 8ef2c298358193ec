#include "tests/plan/parts_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::test {
namespace {

using TensorOf = std::function<const keep::NamedTensor&(const ScienceStep&)>;

/// Sums a tensor over the steps of all ranks, mean over replicas.
std::vector<float> sum_of(const std::vector<ScienceStep>& steps, int replicas,
                          const TensorOf& tensor) {
  std::vector<float> sum(numbers_of(tensor(steps.front())).size());
  for (const ScienceStep& step : steps)
    for (size_t k = 0; k < sum.size(); ++k)
      sum[k] += numbers_of(tensor(step))[k] / static_cast<float>(replicas);
  return sum;
}

StepData data_of(const Parts& parts, int replica) {
  const auto r = static_cast<size_t>(replica);
  return {.data = r, .held = parts.held.empty() ? nullptr : &parts.held[r]};
}

}  // namespace

int Parts::ranks() const {
  return static_cast<int>(
             std::accumulate(spatial.begin(), spatial.end(), int64_t{1}, std::multiplies<>())) *
         replicas;
}

std::string Parts::text() const {
  return fmt::format("{} ({}, {}, batch {}) on {} parts x {} replica(s)", network, layout,
                     name_of(rectifiers), batch,
                     spatial.empty() ? "1" : fmt::format("{}", fmt::join(spatial, "x")), replicas);
}

plan::PlanOptions parts_options(const std::string& layout) {
  return {.layout = layout, .measure = false};
}

std::vector<ScienceStep> serial_steps(const Parts& parts, int64_t slabs) {
  const ScienceNetwork serial =
      science_network(parts.network, DType::f32, parts.batch, {.slabs = slabs}, parts.rectifiers);
  std::vector<ScienceStep> steps;
  for (int r = 0; r < parts.replicas; ++r)
    steps.push_back(
        run_step(serial, backend::CpuBackend(), parts_options(parts.layout), data_of(parts, r)));
  return steps;
}

std::vector<ScienceStep> part_steps(const Parts& parts) {
  const backend::CpuBackend backend;
  std::vector<ScienceStep> got(static_cast<size_t>(parts.ranks()));
  comm::run_ranks(parts.ranks(), [&](comm::Communicator& communicator) {
    const split::PartGrid grid(parts.spatial, 1, parts.ranks(), communicator.rank());
    got[static_cast<size_t>(communicator.rank())] = run_part(
        science_network(parts.network, DType::f32, parts.batch,
                        {.slabs = parts.slabs, .grid = grid}, parts.rectifiers),
        backend, parts_options(parts.layout), grid, communicator, data_of(parts, grid.group()));
  });
  return got;
}

bool is_zero(std::span<const float> gradient) {
  double squares = 0;
  for (const double g : gradient) squares += g * g;
  return squares < 1e-12;
}

PartsDistance expect_serial(const Parts& parts, const std::vector<ScienceStep>& got,
                            const std::vector<ScienceStep>& serial, double gradients) {
  const auto replicas = static_cast<size_t>(parts.replicas);
  const std::vector<ScienceStep> want(serial.begin(), serial.begin() + parts.replicas);
  PartsDistance d;
  for (size_t r = 0; r < got.size(); ++r) {
    const double apart = far(got[r].out, want[r / (got.size() / replicas)].out);
    EXPECT_LT(apart, 1e-4) << "rank " << r << " of " << parts.text();  // also fails for NaN
    d.out = std::max(d.out, apart);
  }
  const TensorOf loss = [](const ScienceStep& step) -> const keep::NamedTensor& {
    return step.loss;
  };
  d.loss = std::abs(sum_of(got, parts.replicas, loss)[0] - sum_of(want, parts.replicas, loss)[0]);
  EXPECT_LE(d.loss, 1e-5) << parts.text();
  for (size_t i = 0; i < want.front().gradients.size(); ++i) {
    const TensorOf tensor = [i](const ScienceStep& step) -> const keep::NamedTensor& {
      return step.gradients[i];
    };
    const std::string& name = want.front().gradients[i].name;
    const std::vector<float> g = sum_of(got, parts.replicas, tensor),
                             serial_g = sum_of(want, parts.replicas, tensor);
    if (is_zero(serial_g)) {
      EXPECT_TRUE(is_zero(g)) << name << " of " << parts.text();
      d.zero.push_back(name);
      continue;
    }
    const double apart = far(g, serial_g);
    EXPECT_LT(apart, gradients) << name << " of " << parts.text();
    if (apart < d.gradient) continue;
    d.gradient = apart;
    d.farthest = name;
  }
  for (size_t i = 0; i < want.back().model.size(); ++i) {
    const double apart = far(got.back().model[i], want.back().model[i]);
    EXPECT_LT(apart, 1e-4) << want.back().model[i].name << " of " << parts.text();
    d.model = std::max(d.model, apart);
  }
  return d;
}

PartsDistance expect_serial(const Parts& parts, double gradients) {
  return expect_serial(parts, part_steps(parts), serial_steps(parts), gradients);
}

bool expect_same_bits(const Parts& parts, const std::vector<ScienceStep>& once,
                      const std::vector<ScienceStep>& again) {
  bool same = true;
  const auto compare = [&](const keep::NamedTensor& a, const keep::NamedTensor& b) {
    EXPECT_TRUE(a.bytes == b.bytes) << a.name << " of " << parts.text();
    same = same && a.bytes == b.bytes;
  };
  for (size_t r = 0; r < once.size(); ++r) {
    compare(once[r].loss, again[r].loss);
    for (size_t i = 0; i < once[r].gradients.size(); ++i)
      compare(once[r].gradients[i], again[r].gradients[i]);
  }
  return same;
}

Flips flips(const Parts& parts, const std::vector<ScienceStep>& got,
            const std::vector<ScienceStep>& serial) {
  Flips f;
  const size_t ranks = got.size() / static_cast<size_t>(parts.replicas);  // all have whole outputs
  for (size_t r = 0; r < static_cast<size_t>(parts.replicas); ++r)
    for (size_t i = 0; i < serial[r].seen.size(); ++i) {
      const std::span<const float> a = numbers_of(got[r * ranks].seen[i]),
                                   b = numbers_of(serial[r].seen[i]);
      f.of += std::ssize(b);
      for (size_t k = 0; k < b.size(); ++k) {
        if ((a[k] > 0) == (b[k] > 0)) continue;
        ++f.count;
        f.largest = std::max({f.largest, a[k], b[k]});
      }
    }
  return f;
}

}  // namespace tutti::test
