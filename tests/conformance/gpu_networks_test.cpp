// Which ops have own kernels on a GPU: a written list, and the networks that train and predict with
// own kernels alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gpu_devices.h"
#include "tutti/backend/conformance/op_case.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/models/registry.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/plan/plan.h"
#include "tutti/train/network/training_graph.h"

namespace tutti {
namespace {

using config::OptimizerKind, config::OptimizerSection;
using Names = std::set<std::string, std::less<>>;

/// All ops of the networks below, forward and backward, with their updates.
const Names kNeeded{"activation",
                    "activation_grad",
                    "adam_update",
                    "add",
                    "batch_norm_apply",
                    "batch_norm_grad_apply",
                    "batch_norm_grad_reduce",
                    "batch_norm_inference",
                    "batch_norm_stats",
                    "bias_backward",
                    "broadcast",
                    "clip_scale",
                    "concat",
                    "conv",
                    "conv_backward_data",
                    "conv_backward_weights",
                    "conv_transpose",
                    "dense",
                    "dense_backward_data",
                    "dense_backward_weights",
                    "dropout",
                    "gaussian_kl",
                    "gaussian_kl_grad",
                    "gaussian_sample",
                    "global_average_pool",
                    "global_average_pool_grad",
                    "gradient_squares",
                    "lamb_moments",
                    "lamb_update",
                    "lars_update",
                    "move_box",
                    "mul",
                    "pad",
                    "parameter_norms",
                    "pointwise_loss",
                    "pointwise_loss_grad",
                    "pool",
                    "pool_grad",
                    "reorder",
                    "reshape",
                    "rmsprop_update",
                    "scale",
                    "sgd_update",
                    "slice",
                    "slice_grad",
                    "softmax_cross_entropy",
                    "softmax_cross_entropy_grad",
                    "spatial_sum",
                    "weight_average"};

struct Network {
  const char* model;
  Shape input = {};  ///< rank 0: the model's own
  std::vector<models::LayerTable> layers = {};
};

models::LayerTable layer(const char* type, int64_t channels, int64_t kernel, int64_t pad,
                         const char* activation) {
  models::LayerTable made{
      {{"type", std::string(type)}, {"kernel", kernel}, {"stride", int64_t{2}}}};
  if (channels > 0) made.entries.emplace_back("channels", channels);
  if (pad > 0) made.entries.emplace_back("pad", pad);
  if (activation) made.entries.emplace_back("activation", std::string(activation));
  return made;
}

/// Small inputs: an op is the same for all sizes.
std::vector<Network> networks() {
  return {
      {"lenet"},
      {"resnet44"},
      {"resnet18", {3, 64, 64}},
      {"resnet50", {3, 64, 64}},
      {"vgg11-bn", {3, 32, 32}},
      {"fc-densenet56", {3, 32, 32}},
      {"cosmoflow", {4, 32, 32, 32}},
      {"cosmoflow-small", {4, 32, 32, 32}},
      {"deepcam", {16, 64, 64}},
      {"deepcam-small", {16, 64, 64}},
      {"ffn", {1, 9, 9, 9}},
      {"protein-vae", {1, 8, 8}},
      {"protein-vae", {1, 9, 9}},
      {"layers",  // examples/layers_autoencoder.toml
       {1, 16, 16},
       {layer("conv", 16, 4, 1, "relu"), layer("conv", 8, 4, 1, "relu"),
        layer("transposed_conv", 16, 2, 0, "relu"), layer("transposed_conv", 0, 2, 0, nullptr)}}};
}

models::ModelSpec spec_of(const Network& network, DType activations) {
  models::ModelSpec spec;
  spec.name = network.model;
  spec.input = network.input;
  spec.layers = network.layers;
  if (!spec.layers.empty()) {
    spec.task = models::TaskKind::regress;
    spec.classes = 1;
    spec.targets = {{.name = spec.target_field, .sample = spec.input}};
  }
  spec.batch = 2;
  spec.activations = activations;
  return spec;
}

/// Plans the graph with own kernels alone and adds its ops to `met`.
void plan_with_own_kernels(const std::string& what, const graph::Graph& graph,
                           const backend::Backend& backend, Names& met) {
  for (const char* layout : {"last", "plain"}) {
    try {
      const plan::Plan plan = plan::compile(
          graph, backend,
          {.threads = 1, .layout = layout, .tile_bytes = size_t{1} << 60, .measure = false});
      const auto look = [&](const plan::Step& step) {
        met.emplace(step.request.op->name());
        EXPECT_TRUE(step.kernel.starts_with("gpu:"))
            << what << ": " << step.name << " by " << step.kernel;
      };
      for (const plan::PlanBand& band : plan.bands) std::ranges::for_each(band.steps, look);
      std::ranges::for_each(plan.updates, look);
      std::ranges::for_each(plan.packs, look);
    } catch (const Error& error) {
      ADD_FAILURE() << what << ", layout " << layout << ": " << error.what();
    }
  }
}

void plan_training(const Network& network, DType activations, const OptimizerSection& optimizer,
                   const backend::Backend& backend, Names& met) {
  train::TrainingGraphSpec spec;
  spec.model = spec_of(network, activations);
  spec.optimizer = optimizer;
  spec.split.tile_bytes = backend.tile_bytes();
  spec.joins_moves = backend.joins_moves();
  plan_with_own_kernels(std::string(network.model) + " in " + std::string(name_of(activations)),
                        train::make_training_graph(spec).graph, backend, met);
}

void plan_prediction(const Network& network, DType activations, const backend::Backend& backend,
                     Names& met) {
  models::ModelSpec spec = spec_of(network, activations);
  spec.mode = ops::Mode::eval;
  const graph::Graph graph = models::build_model(spec).graph;
  plan_with_own_kernels(std::string("predictions of ") + network.model,
                        ops::fuse_forward(ops::drop_copies(graph).graph).graph, backend, met);
}

TEST(GpuNetworks, NeedNoOtherKernelsThanOwnOnesOfTheWrittenOps) {
  const Emulated emulated(1);
  Names met;
  for (const DType activations : {DType::f32, DType::bf16})
    for (const Network& network : networks()) {
      plan_training(network, activations, {}, emulated.backend, met);
      plan_prediction(network, activations, emulated.backend, met);
    }
  for (const OptimizerSection& optimizer :
       {OptimizerSection{.momentum = 0, .clip_norm = 1},
        OptimizerSection{.momentum = 0.9, .nesterov = true, .weight_decay = 0.1, .ema = 0.9},
        OptimizerSection{.name = OptimizerKind::adam, .clip_value = 0.5},
        OptimizerSection{.name = OptimizerKind::adamw, .weight_decay = 0.1},
        OptimizerSection{.name = OptimizerKind::rmsprop},
        OptimizerSection{.name = OptimizerKind::lars, .exclude = {"bias", "norm"}},
        OptimizerSection{.name = OptimizerKind::lamb, .exclude = {"bias", "norm"}}})
    plan_training({"resnet8"}, DType::f32, optimizer, emulated.backend, met);
  for (const std::string& op : met)
    EXPECT_TRUE(kNeeded.contains(op)) << op << " is not in the list";
  for (const std::string& op : kNeeded)
    EXPECT_TRUE(met.contains(op)) << op << " is in the list, and no network has it";
}

/// The cases of each op that is needed run on an own kernel, so they are compared with the
/// reference.
TEST(GpuNetworks, AllWrittenOpsHaveOwnKernels) {
  Names found;
  for (const std::string& line : backend::conformance_lines())
    if (const std::string op = op_word(line);
        kNeeded.contains(op) && !found.contains(op) &&
        backend::own_kernels().has(*backend::parse_op_case(line).problem.op))
      found.insert(op);
  for (const std::string& op : kNeeded)
    EXPECT_TRUE(found.contains(op)) << op << " has no own kernel, or no case";
}

}  // namespace
}  // namespace tutti
