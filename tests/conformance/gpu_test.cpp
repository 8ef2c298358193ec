// Tests the own kernels of the GPU backend, of all ops that have cases: on emulated devices and,
// where there is one, on a GPU against the reference, and on an emulated device bit by bit against
// the CPU's kernels where the arithmetic is the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gpu_devices.h"
#include "tutti/backend/conformance/conformance.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/device/cuda_library.h"

namespace tutti {
namespace {

using backend::GpuBackend, backend::OpCase, backend::OpRun, backend::Values;

/// Returns the ops of the case list that have own kernels, each once.
std::vector<std::string> ops_with_kernels() {
  std::vector<std::string> names, without;
  for (const std::string& line : backend::conformance_lines()) {
    const std::string name = op_word(line);
    if (std::ranges::find(names, name) != names.end() ||
        std::ranges::find(without, name) != without.end())
      continue;
    const bool has = backend::own_kernels().has(*backend::parse_op_case(line).problem.op);
    (has ? names : without).push_back(name);
  }
  return names;
}

/// Runs all cases of an op on devices that are alike.
void expect_conformance(const std::string& op, std::span<const backend::Backend* const> alike) {
  int runs = 0;
  std::string refusals;
  for (const std::string& line : backend::conformance_lines()) {
    if (op_word(line) != op) continue;
    const backend::ConformanceReport report =
        backend::check_on_devices(backend::parse_op_case(line), alike);
    runs += report.runs;
    for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
    for (const std::string& refusal : report.refusals) refusals += line + " " + refusal + "\n";
  }
  EXPECT_GT(runs, 0) << op << ": " << refusals;
}

class Gpu : public testing::TestWithParam<std::string> {};

/// The order of threads and of streams differs from seed to seed, and results may not.
TEST_P(Gpu, OwnKernelsAgreeWithTheReference) {
  constexpr uint64_t kSeeds = 5;
  std::vector<std::unique_ptr<Emulated>> devices;
  std::vector<const backend::Backend*> alike;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    alike.push_back(&devices.emplace_back(std::make_unique<Emulated>(seed))->backend);
  expect_conformance(GetParam(), alike);
}

INSTANTIATE_TEST_SUITE_P(Ops, Gpu, testing::ValuesIn(ops_with_kernels()),
                         [](const auto& info) { return info.param; });

/// Launched one by one and recorded, kernels have the same bits.
TEST(CudaGpu, OwnKernelsAgreeWithTheReference) {
  const std::vector<std::string> places = {TUTTI_CUDA_LIBRARY};
  if (const device::CudaReport report = device::cuda_report(places); report.devices.empty())
    GTEST_SKIP() << report.problem;
  const std::unique_ptr<device::Device> device = device::open_cuda_device(0, places);
  const backend::CpuBackend host;
  const GpuBackend launched(*device, host, backend::GpuKernels::own_only),
      recorded(*device, host, backend::GpuKernels::own_only);
  const backend::Backend* const alike[] = {&launched, &recorded};
  for (const std::string& op : ops_with_kernels()) expect_conformance(op, alike);
}

/// Runs the first kernel of the backend on the whole batch; returns outputs, then inputs.
std::vector<Values> results_of(const OpCase& c, const backend::Backend& backend,
                               const std::string& layout) {
  OpRun run(c.problem, backend,
            {.layout = layout, .kernel = {}, .step = {.seed = 7, .step = 3, .replica = 2}});
  const std::vector<Values> inputs = backend::random_inputs(c, 1);
  for (size_t i = 0; i < inputs.size(); ++i) run.set_in(i, inputs[i]);
  run.spoil_outputs();
  run.run();
  std::vector<Values> results;
  for (size_t i = 0; i < run.out_types().size(); ++i) results.push_back(run.out(i));
  for (size_t i = 0; i < inputs.size(); ++i) results.push_back(run.in(i));
  return results;
}

/// Updates and whatever rounds once for each element: training on a GPU then differs from training
/// on a CPU only by the order of sums and by functions such as exp.
TEST(Gpu, ElementwiseKernelsHaveTheBitsOfTheCpus) {
  const std::set<std::string> whole{"add",
                                    "mul",
                                    "scale",
                                    "dropout",
                                    "broadcast",
                                    "sgd_update",
                                    "adam_update",
                                    "rmsprop_update",
                                    "lars_update",
                                    "lamb_moments",
                                    "lamb_update",
                                    "weight_average",
                                    "parameter_norms",
                                    "gradient_squares",
                                    "clip_scale"};
  const auto exact = [&](const std::string& line) {
    return whole.contains(op_word(line)) ||
           (line.starts_with("activation") && (line.ends_with("relu")));  // leaky_relu, too
  };
  const Emulated emulated(1);
  int compared = 0;
  for (const std::string& line : backend::conformance_lines()) {
    if (!exact(line)) continue;
    const OpCase c = backend::parse_op_case(line);
    for (const char* layout : {"plain", "last"}) {
      ++compared;
      EXPECT_TRUE(results_of(c, emulated.backend, layout) == results_of(c, emulated.host, layout))
          << line << ", layout " << layout;
    }
  }
  EXPECT_GT(compared, 100);
}

/// The random numbers are the same on every device to the last bit or so of float, since they are
/// made of doubles. What is left are roundings: of the product, the sum, and exp, for which CUDA's
/// expf may be two units in the last place away.
TEST(Gpu, DrawsDifferFromTheCpusByRoundingsAlone) {
  const Emulated emulated(1);
  for (const std::string& line : backend::conformance_lines()) {
    if (!line.starts_with("gaussian_sample f32")) continue;
    const OpCase c = backend::parse_op_case(line);
    const std::vector<Values> got = results_of(c, emulated.backend, "last"),
                              want = results_of(c, emulated.host, "last");
    const Values &z = got[0], &of_cpu = want[0], &mean = got[1];
    for (size_t i = 0; i < z.size(); ++i)
      EXPECT_NEAR(z[i], of_cpu[i], 5 * 0x1p-24 * (std::abs(mean[i]) + std::abs(z[i] - mean[i])))
          << line << ", element " << i;
  }
}

TEST(Gpu, DeviceFunctionsHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const device::DeviceFunction& function : backend::own_functions())
    EXPECT_TRUE(names.insert(function.name).second) << function.name;
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace tutti
