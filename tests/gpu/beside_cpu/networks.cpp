#include "tests/gpu/beside_cpu/networks.h"

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::test {
namespace {

constexpr int64_t kBatches = 16;

/// FFN's probabilities of voxels inside and outside of an object, and their logits.
constexpr double kInside = 0.95, kOutside = 0.05, kSeed = 2.9444389791664403;

struct Recipe {
  models::ModelSpec model;
  config::OptimizerSection optimizer;
};

Recipe recipe_of(const std::string& name) {
  if (name == "resnet44")
    return {{.name = "resnet44",
             .input = {3, 32, 32},
             .batch = 2,
             .shortcut = models::ModelSpec::Shortcut::A},
            {.lr = 0.002, .momentum = 0.9, .weight_decay = 1e-4}};
  if (name == "cosmoflow")
    return {{.name = "cosmoflow",
             .input = {4, 32, 32, 32},
             .input_field = "x",
             .target_field = "y",
             .batch = 2,
             .width = 8,
             .hidden = {32, 16}},
            {.lr = 0.004, .momentum = 0.9}};
  if (name == "deepcam") {
    Recipe recipe{{.name = "deepcam-small",
                   .input = {16, 32, 48},
                   .input_field = "data",
                   .target_field = "label",
                   .batch = 2},
                  {.name = config::OptimizerKind::adam, .lr = 0.003}};
    recipe.model.loss = {.class_weights = {1.0017299f, 2.6146112f, 1.7164197f},
                         .mean_over = ops::MeanOver::labels};
    return recipe;
  }
  if (name == "ffn")
    return {{.name = "ffn",
             .input = {1, 17, 17, 17},
             .target_field = "label",
             .batch = 2,
             .width = 8,
             .depth = 3},
            {.name = config::OptimizerKind::adam, .lr = 0.002, .clip_value = 0.7}};
  throw ConfigError(fmt::format("no small network '{}': resnet44, cosmoflow, deepcam, ffn", name));
}

/// Draws one element of an input.
double drawn(const models::GraphInput& input, DType dtype, Rng& rng) {
  if (dtype == DType::i32)
    return static_cast<double>(rng.below(static_cast<uint32_t>(input.classes)));
  if (input.field == "seed") return rng.below(8) == 0 ? kSeed : -kSeed;
  if (input.field == "label") return rng.below(2) == 0 ? kInside : kOutside;
  const float x = rng.normal();
  if (input.field == "y") return static_cast<double>(0.5f * x);
  return dtype == DType::bf16 ? static_cast<double>(static_cast<float>(bf16(x)))
                              : static_cast<double>(x);
}

}  // namespace

SmallNetwork small_network(const std::string& name, DType activations) {
  Recipe recipe = recipe_of(name);
  recipe.model.activations = activations;
  train::TrainingGraphSpec spec;
  spec.model = recipe.model;
  spec.optimizer = recipe.optimizer;
  spec.split = {.threads = 1, .tile_bytes = size_t{1} << 60, .slabs = 1};
  return {train::make_training_graph(spec), recipe.optimizer.lr};
}

std::vector<Numbers> batch_of(const train::TrainingGraph& training, int64_t step) {
  std::vector<Numbers> batch;
  for (const models::GraphInput& input : training.inputs) {
    const TensorDesc& desc = training.graph.type(input.value).desc;
    Rng rng(static_cast<uint64_t>(step % kBatches), Purpose::test, batch.size());
    Numbers& numbers = batch.emplace_back(static_cast<size_t>(desc.elements()));
    for (double& x : numbers) x = drawn(input, desc.dtype, rng);
  }
  return batch;
}

}  // namespace tutti::test
