#include "tutti/models/network/ffn.h"

namespace tutti::models {
namespace {

ops::ConvSpec window_of(int64_t channels, int64_t kernel) {
  return {.out_channels = channels,
          .kernel = ops::in_all(kernel),
          .pad = ops::in_all(kernel / 2),
          .bias = true,
          .init = Init::Kind::glorot_uniform,
          .bias_init = Init::Kind::zeros};
}

}  // namespace

Value ffn_logits(Graph& graph, Value image, Value seed, const FfnSpec& spec) {
  const Shape& x = graph.shape(image);
  require(x.rank() == 5 && x[1] == 1 && graph.shape(seed) == x,
          "ffn: takes an image and a seed of one channel and one shape, "
          "[N, 1, D, H, W], met {} and {} with the batch",
          x, graph.shape(seed));
  require(spec.depth >= 1 && spec.features >= 1,
          "ffn: depth {} and {} features: both are 1 or more", spec.depth, spec.features);
  const auto convolved = [&](int64_t module, char which, Value in) {
    return ops::conv(graph, fmt::format("conv{}_{}", module, which), in,
                     window_of(spec.features, 3));
  };
  Value y = convolved(0, 'a', ops::concat(graph, "image_and_seed", {image, seed}));
  y = convolved(0, 'b', ops::relu(graph, "conv0_a.relu", y));
  for (int64_t module = 1; module < spec.depth; ++module) {
    const Value before = y;
    y = convolved(module, 'a', ops::relu(graph, fmt::format("module{}.relu", module), y));
    y = convolved(module, 'b', ops::relu(graph, fmt::format("conv{}_a.relu", module), y));
    y = ops::add(graph, fmt::format("module{}", module), y, before);
  }
  // The last layer starts at zero, so that an untrained network returns the seed's logits
  // unchanged. Otherwise its first logits are the sums of the residual modules, which nothing
  // normalises, and training begins with a loss of 40.
  ops::ConvSpec last = window_of(1, 1);
  last.init = Init::Kind::zeros;
  y = ops::conv(graph, "conv_lom", ops::relu(graph, "relu", y), last);
  return ops::add(graph, "logits", ops::convert(graph, "update", y, DType::f32),
                  ops::convert(graph, "seed_logits", seed, DType::f32));
}

void build_ffn(ModelBuilder& model) {
  FfnSpec spec;
  if (model.spec().depth > 0) spec.depth = model.spec().depth;
  if (model.spec().width > 0) spec.features = model.spec().width;
  const std::vector<ModelField>& inputs = model.spec().inputs;
  const std::string seed = inputs.size() > 1 ? inputs[1].name : "seed";
  const Value image = model.input();
  model.predict(ffn_logits(model.graph(), image, model.input(seed), spec));
}

}  // namespace tutti::models
