// How much memory the own kernels move, on the emulated device, which counts sectors and has no
// caches.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu_devices.h"
#include "tutti/backend/conformance/op_case.h"
#include "tutti/ops/activation.h"

namespace tutti {
namespace {

using backend::OpCase, backend::OpRun;

/// Bytes that an op must move: what it reads, and what it writes.
double bytes_of(const OpCase& c, const std::string& layout, const backend::Backend& backend) {
  const OpRun run(c.problem, backend, {.layout = layout, .kernel = {}, .step = {}});
  double bytes = static_cast<double>(run.bytes());
  for (size_t i = 0; i < c.problem.in.size(); ++i)
    if (c.problem.op->mutates(static_cast<int>(i)))
      bytes += static_cast<double>(c.problem.in[i].desc.bytes());
  return bytes;
}

double moved_bytes(const OpCase& c, const std::string& layout, Emulated& emulated) {
  OpRun run(c.problem, emulated.backend, {.layout = layout, .kernel = {}, .step = {}});
  const std::vector<backend::Values> inputs = backend::random_inputs(c, 1);
  for (size_t i = 0; i < inputs.size(); ++i) run.set_in(i, inputs[i]);
  emulated.device->count_sectors();
  run.run();
  return static_cast<double>(emulated.device->sectors().sectors * device::SectorCounts::kBytes);
}

/// Shares of the bytes of an op's operands that its kernel must move, by type.
struct Needed {
  double f32 = 1, bf16 = 1;
};

struct Case {
  std::string line, layout;
  double needed;
  const char* why;  ///< where it is not all of them once
};

class Table {
 public:
  void add(const std::vector<std::string>& ops, const std::string& rest, Needed needed = {},
           const char* why = "", const char* layout = "last") {
    for (const std::string& op : ops) {
      cases.push_back({fmt::format("{} f32 {}", op, rest), layout, needed.f32, why});
      cases.push_back({fmt::format("{} bf16 {}", op, rest), layout, needed.bf16, why});
    }
  }
  void add_update(const std::string& op, double needed = 1, const char* why = "") {
    cases.push_back({fmt::format("{} f32 n20000 count3", op), "plain", needed, why});
  }
  std::vector<Case> cases;
};

void add_norms_and_pools(Table& t, const std::string& image) {
  t.add(
      {"batch_norm_stats", "batch_norm_moments", "batch_norm_grad_scale", "batch_norm_grad_apply"},
      image);
  t.add({"batch_norm_apply", "batch_norm_inference"}, image + " relu residual");
  t.add({"batch_norm_grad_reduce"}, image + " relu two");
  t.add({"global_average_pool", "global_average_pool_grad", "spatial_sum", "broadcast"}, image);
  t.add({"pool", "pool_grad"}, image + " max r2s2 stride2");
  t.add({"pool", "pool_grad"}, image + " average r2s2 stride2");
  const char* const overlap =
      "windows overlap: what another warp has read, a cache has (23 * 23 reads of 16 * 16 in 8 * 8 "
      "windows, less what a warp shares)";
  t.add({"pool"}, image + " max r3s3 stride2 pad1", {1.79, 1.75}, overlap);
  t.add({"pool_grad"}, image + " max r3s3 stride2 pad1", {2.23, 2.41}, overlap);
  t.add({"resize"}, image + " factor2", {1.2, 1.2},
        "two rows of y show a row of x: the second finds it in a cache");
  t.add({"resize_grad"}, image + " factor2");
}

void add_copies(Table& t, const std::string& image) {
  const char* const some = "what is left out is not read";
  t.add({"pad"}, "n4c32h16w16 low8 high8");
  t.add({"slice"}, "n16c64h16w16 from16 channels", {2. / 3, 2. / 3}, some);
  t.add({"slice_grad"}, "n16c64h16w16 from16 channels");
  t.add({"slice"}, image + " step2 positions", {0.4, 0.4}, some);
  t.add({"slice_grad"}, image + " step2 positions");
  t.add({"concat"}, image + " axis1 other16");
  t.add({"reshape"}, image, {2, 2}, "neither side is plain: it goes by way of a plain copy");
  t.add({"reshape"}, image, {}, "", "plain");
  t.cases.push_back({"reorder f32 " + image + " to_bf16", "last", 1, ""});
  t.cases.push_back({"reorder bf16 " + image + " to_f32", "last", 1, ""});
}

void add_losses(Table& t, const std::string& image) {
  t.add({"softmax_cross_entropy", "softmax_cross_entropy_grad"}, "n2048c10");
  t.add({"softmax_cross_entropy", "softmax_cross_entropy_grad"}, "n4c3w4096 weights", {1.05, 1.1},
        "class weights and the divisor, which a cache has");
  t.add({"softmax_cross_entropy", "softmax_cross_entropy_grad"}, "n256c100", {1.08, 1.17},
        "a row of 200 or 400 bytes begins within a sector, and its warp reads a sector for the "
        "label");
  t.add({"pointwise_loss", "pointwise_loss_grad"}, image + " mse");
  t.add({"gaussian_kl", "gaussian_kl_grad"}, "n2048c32");
}

void add_updates(Table& t) {
  t.add_update("sgd_update");
  t.cases.push_back({"sgd_update f32 n20000 momentum0.9 decay0.0001 count3", "plain", 1, ""});
  t.add_update("adam_update");
  t.add_update("rmsprop_update");
  t.add_update("lars_update");
  t.add_update("lamb_moments");
  t.add_update("lamb_update", 4. / 5, "the gradient is not read");
  t.add_update("weight_average", 3. / 4, "the gradient is not read");
  t.add_update("parameter_norms");
  t.add_update("gradient_squares", 1. / 2, "the weights are not read");
}

/// The sizes are like those in the middle of a ResNet-44.
std::vector<Case> cases() {
  Table t;
  const std::string image = "n16c32h16w16";
  t.add({"add", "mul", "scale", "dropout", "bias_backward", "gaussian_sample"}, image);
  for (const ops::ActivationKind kind : ops::activation_kinds())
    t.add({"activation", "activation_grad"}, fmt::format("{} {}", image, name_of(kind)));
  add_norms_and_pools(t, image);
  add_copies(t, image);
  add_losses(t, image);
  add_updates(t);
  return t.cases;
}

TEST(GpuSectors, KernelsThatWaitForMemoryMoveNoMoreThanTheyMust) {
  Emulated emulated(1);
  fmt::print("{:>10} {:>6} {:>6}  case\n", "moved", "ratio", "needed");
  for (const Case& c : cases()) {
    const OpCase op_case = backend::parse_op_case(c.line);
    const double moved = moved_bytes(op_case, c.layout, emulated),
                 ratio = moved / bytes_of(op_case, c.layout, emulated.backend);
    fmt::print("{:10.0f} {:6.3f} {:6.3f}  {}{}{}\n", moved, ratio, c.needed, c.line,
               *c.why ? ": " : "", c.why);
    EXPECT_LE(ratio, 1.1 * c.needed) << c.line;
    EXPECT_GE(ratio, 0.95 * c.needed) << c.line << ": the table asks for too much";
  }
}

}  // namespace
}  // namespace tutti
