#include "tutti/models/network/fc_densenet.h"

namespace tutti::models {
namespace {

/// Holds the settings that all layers of one network share.
class TiramisuLayers {
 public:
  TiramisuLayers(Graph& graph, const FcDenseNetSpec& spec) : graph_(graph), spec_(spec) {}

  Value convolution(const std::string& name, Value x, int64_t maps, int64_t kernel) const {
    return ops::conv(graph_, name, x,
                     {.out_channels = maps,
                      .kernel = ops::in_all(kernel),
                      .pad = ops::in_all(kernel / 2),
                      .bias = true,
                      .init = Init::Kind::kaiming_uniform_fan_in,
                      .bias_init = Init::Kind::zeros});
  }
  Value normed(const std::string& name, Value x, int64_t maps, int64_t kernel) const {
    const Value y = ops::batch_norm(graph_, name + ".norm", x, spec_.mode, {.relu = true});
    return ops::dropout(graph_, name + ".drop", convolution(name + ".conv", y, maps, kernel),
                        spec_.dropout, spec_.mode);
  }

  struct Block {
    Value all;    ///< the block's input and what its layers have added
    Value added;  ///< only what its layers have added
  };
  Block block(const std::string& name, Value x, int layers) const {
    std::vector<Value> added;
    Value all = x;
    for (int i = 0; i < layers; ++i) {
      const std::string layer = fmt::format("{}.layers.{}", name, i);
      added.push_back(normed(layer, all, spec_.growth, 3));
      all = ops::concat(graph_, layer + ".cat", {all, added.back()});
    }
    return {all, added.size() == 1 ? added[0] : ops::concat(graph_, name + ".added", added)};
  }
  Block last_block(const std::string& name, Value x, int layers) const {
    Value all = x;
    for (int i = 0; i < layers; ++i) {
      const std::string layer = fmt::format("{}.layers.{}", name, i);
      all = ops::concat(graph_, layer + ".cat", {all, normed(layer, all, spec_.growth, 3)});
    }
    return {all, {}};
  }
  Value down(const std::string& name, Value x) const {
    return ops::pool(
        graph_, name + ".maxpool", normed(name, x, graph_.shape(x)[1], 1),
        {.kind = ops::PoolKind::max, .kernel = ops::in_all(2), .stride = ops::in_all(2)});
  }
  Value up(const std::string& name, Value added, Value skipped) const {
    const Value y = ops::conv_transpose(graph_, name + ".convTrans", added,
                                        {.out_channels = graph_.shape(added)[1],
                                         .kernel = ops::in_all(3),
                                         .stride = ops::in_all(2),
                                         .pad_high = ops::in_all(1),
                                         .bias = true,
                                         .init = Init::Kind::kaiming_uniform_fan_in,
                                         .bias_init = Init::Kind::zeros});
    return ops::concat(graph_, name + ".cat", {y, skipped});
  }

 private:
  Graph& graph_;
  const FcDenseNetSpec& spec_;
};

}  // namespace

FcDenseNetSpec fc_densenet(int depth) {
  if (depth == 56) return {.layers = {4, 4, 4, 4, 4}, .bottleneck = 4, .growth = 12};
  if (depth == 67) return {.layers = {5, 5, 5, 5, 5}, .bottleneck = 5, .growth = 16};
  CHECK(depth == 103, "depth {}", depth);
  return {.layers = {4, 5, 7, 10, 12}, .bottleneck = 15, .growth = 16};
}

Value fc_densenet_prediction(Graph& graph, Value images, const FcDenseNetSpec& spec) {
  const Shape& shape = graph.shape(images);
  const int64_t multiple = int64_t{1} << spec.layers.size();
  require(shape.rank() == 4 && shape[2] % multiple == 0 && shape[3] % multiple == 0,
          "fc-densenet: halves images {} times and doubles them again, so it takes "
          "[C, H, W] with H and W multiples of {}, met {} with the batch: crop or pad "
          "them, or choose another model",
          spec.layers.size(), multiple, shape);
  const TiramisuLayers layers(graph, spec);
  std::vector<Value> skipped;
  Value x = layers.convolution("firstconv", images, spec.first, 3);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    skipped.push_back(
        layers.last_block(fmt::format("denseBlocksDown.{}", i), x, spec.layers[i]).all);
    x = layers.down(fmt::format("transDownBlocks.{}", i), skipped.back());
  }
  TiramisuLayers::Block block = layers.block("bottleneck.bottleneck", x, spec.bottleneck);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const size_t mirrored = spec.layers.size() - 1 - i;
    x = layers.up(fmt::format("transUpBlocks.{}", i), block.added, skipped[mirrored]);
    const std::string name = fmt::format("denseBlocksUp.{}", i);
    block = mirrored == 0 ? layers.last_block(name, x, spec.layers[0])
                          : layers.block(name, x, spec.layers[mirrored]);
  }
  return layers.convolution("finalConv", block.all, spec.outputs, 1);
}

}  // namespace tutti::models
