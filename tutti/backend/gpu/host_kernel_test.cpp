#include "tutti/backend/gpu/host_kernel.h"

#include <gtest/gtest.h>

#include "tutti/backend/conformance/op_case.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/gpu/gpu_backend.h"
#include "tutti/device/emulated/emulated_device.h"

namespace tutti::backend {
namespace {

/// Every kind of walk, operands that are changed, accumulators that are an output, and steps.
constexpr const char* kLines[] = {"add f32 n5c16h8w8",
                                  "add f32 n10c7 whole",
                                  "dropout bf16 n3c5h6w7",
                                  "batch_norm_stats f32 n3c5h6w7",
                                  "batch_norm_grad_reduce f32 n4c32h5w7 relu two",
                                  "conv f32 n2c5h9w7 k6r3s2 stride2x1 pad1x0 bias relu",
                                  "conv_backward_weights f32 n4c3h32w32 k16r3s3 pad1",
                                  "dense_backward_weights bf16 n9c33 k10",
                                  "softmax_cross_entropy f32 n3c5h6w7 weights",
                                  "adam_update f32 n333 decay0.1 count2",
                                  "lars_update f32 n5000 momentum0.9 decay0.0001 count3",
                                  "table_update f32 n33c5w8 first2 count3 mean rows40"};

/// Runs a kernel on the whole batch, twice; returns outputs, then inputs.
std::vector<Values> results_of(const OpCase& c, const Backend& backend,
                               const OpRunOptions& options) {
  OpRun run(c.problem, backend, options);
  std::vector<Values> results;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const std::vector<Values> inputs = random_inputs(c, seed);
    for (size_t i = 0; i < inputs.size(); ++i) run.set_in(i, inputs[i]);
    run.spoil_outputs();
    run.run();
    for (size_t i = 0; i < run.out_types().size(); ++i) results.push_back(run.out(i));
    for (size_t i = 0; i < inputs.size(); ++i) results.push_back(run.in(i));
  }
  return results;
}

class HostKernel : public testing::TestWithParam<bool> {};

TEST_P(HostKernel, HasTheBitsThatItHasOnTheHost) {
  const CpuBackend host;
  const auto device = device::make_emulated_device(
      {.seed = 1, .host_work_reads_memory = GetParam(), .functions = {}});
  const GpuBackend backend(*device, host, GpuKernels::host_only);
  for (const char* line : kLines) {
    const OpCase c = parse_op_case(line);
    OpRunOptions options{.layout = "last", .kernel = {}, .step = {.seed = 7, .step = 3}};
    const std::vector<Values> want = results_of(c, host, options);
    for (const bool recorded : {false, true}) {
      options.recorded = recorded;
      EXPECT_TRUE(results_of(c, backend, options) == want) << line;
    }
  }
}

TEST_P(HostKernel, StandsInTheHostsOrder) {
  const CpuBackend host;
  const auto device = device::make_emulated_device(
      {.seed = 1, .host_work_reads_memory = GetParam(), .functions = {}});
  const GpuBackend backend(*device, host, GpuKernels::host_only);
  const OpCase c = parse_op_case("conv f32 n5c16h16w16 k16r3s3 pad1");
  std::vector<std::string> want = OpRun(c.problem, host, {}).accepted();
  for (std::string& name : want) name = "host:" + name;
  EXPECT_EQ(OpRun(c.problem, backend, {}).accepted(), want);
}

INSTANTIATE_TEST_SUITE_P(Memory, HostKernel, testing::Bool(),
                         [](const auto& info) { return info.param ? "OfTheDevice" : "Copied"; });

}  // namespace
}  // namespace tutti::backend
