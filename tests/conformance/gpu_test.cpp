// Tests the own kernels of the GPU backend, of all ops that have cases, on emulated devices:
// against the reference, and bit by bit against the CPU's kernels where the arithmetic is the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tutti/backend/conformance/conformance.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/gpu/gpu_backend.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/device/emulated/emulated_device.h"

namespace tutti {
namespace {

using backend::GpuBackend, backend::OpCase, backend::OpRun, backend::Values;

std::string op_of(const std::string& line) { return line.substr(0, line.find(' ')); }

/// Returns the ops of the case list that have own kernels, each once.
std::vector<std::string> ops_with_kernels() {
  std::vector<std::string> names, without;
  for (const std::string& line : backend::conformance_lines()) {
    const std::string name = op_of(line);
    if (std::ranges::find(names, name) != names.end() ||
        std::ranges::find(without, name) != without.end())
      continue;
    const bool has = backend::own_kernels().has(*backend::parse_op_case(line).problem.op);
    (has ? names : without).push_back(name);
  }
  return names;
}

/// An emulated device and the own kernels for it.
struct Emulated {
  backend::CpuBackend host;
  std::unique_ptr<device::EmulatedDevice> device;
  GpuBackend backend;
  explicit Emulated(uint64_t seed)
      : device(device::make_emulated_device({.seed = seed, .functions = backend::own_functions()})),
        backend(*device, host, backend::GpuKernels::own_only) {}
};

class Gpu : public testing::TestWithParam<std::string> {};

constexpr size_t kDevices = 5, kThorough = 5;

/// The order of threads and of streams differs from seed to seed, and results may not. The first
/// lines of an op run on all devices, later ones on two of them in turn.
TEST_P(Gpu, OwnKernelsAgreeWithTheReference) {
  std::vector<std::unique_ptr<Emulated>> devices;
  std::vector<const backend::Backend*> all;
  for (uint64_t seed = 1; seed <= kDevices; ++seed)
    all.push_back(&devices.emplace_back(std::make_unique<Emulated>(seed))->backend);
  int runs = 0;
  size_t lines = 0;
  std::string refusals;
  for (const std::string& line : backend::conformance_lines()) {
    if (op_of(line) != GetParam()) continue;
    const std::vector<const backend::Backend*> two{all[lines % kDevices],
                                                   all[(lines + 2) % kDevices]};
    const backend::ConformanceReport report =
        backend::check_on_devices(backend::parse_op_case(line), lines++ < kThorough ? all : two);
    runs += report.runs;
    for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
    for (const std::string& refusal : report.refusals) refusals += line + " " + refusal + "\n";
  }
  EXPECT_GT(runs, 0) << refusals;
}

INSTANTIATE_TEST_SUITE_P(Ops, Gpu, testing::ValuesIn(ops_with_kernels()),
                         [](const auto& info) { return info.param; });

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
                                    "weight_average",
                                    "parameter_norms",
                                    "gradient_squares",
                                    "clip_scale"};
  const auto exact = [&](const std::string& line) {
    return whole.contains(op_of(line)) ||
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

/// A kernel that waits for memory reads each operand once and writes it once, in whole sectors;
/// besides there are numbers by channel, which caches hold.
TEST(Gpu, KernelsThatWaitForMemoryMoveNoMoreThanTheyMust) {
  struct Case {
    const char* line;
    double accesses;  ///< to each byte, on average
  };
  const Emulated emulated(1);
  for (const Case& c : {Case{"add bf16 n4c64h8w8", 1},
                        {"activation_grad f32 n4c64h8w8 relu", 1},
                        {"dropout bf16 n4c64h8w8", 1},
                        {"batch_norm_apply bf16 n4c64h8w8 relu residual", 1},
                        {"batch_norm_grad_apply bf16 n4c64h8w8", 1},
                        {"batch_norm_stats bf16 n4c64h8w8", 1},
                        {"sgd_update f32 n4096 momentum0.9", 5. / 3},
                        {"adam_update f32 n4096", 7. / 4},
                        {"gradient_squares f32 n4096", 1. / 2}}) {
    const OpCase op_case = backend::parse_op_case(c.line);
    const std::string layout = "last";
    const auto bytes = static_cast<double>(
        OpRun(op_case.problem, emulated.backend, {.layout = layout, .kernel = {}, .step = {}})
            .bytes());
    emulated.device->count_sectors();
    results_of(op_case, emulated.backend, layout);
    const auto moved =
        static_cast<double>(emulated.device->sectors().sectors * device::SectorCounts::kBytes);
    EXPECT_LE(moved, 1.2 * c.accesses * bytes) << c.line;
    EXPECT_GE(moved, 0.9 * c.accesses * bytes) << c.line;
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
