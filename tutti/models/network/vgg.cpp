#include "tutti/models/network/vgg.h"

#include <algorithm>
#include <array>

namespace tutti::models {
namespace {

constexpr size_t kVggStages = 5;
constexpr int64_t kVggShrinks = int64_t{1} << kVggStages;

/// Returns the number of convolutions in each stage.
std::array<int, kVggStages> convolutions_of(int depth) {
  switch (depth) {
    case 11: return {1, 1, 2, 2, 2};
    case 13: return {2, 2, 2, 2, 2};
    case 16: return {2, 2, 3, 3, 3};
    default: CHECK(depth == 19, "depth {}", depth); return {2, 2, 4, 4, 4};
  }
}

Value vgg_features(Graph& graph, Value x, const ModelSpec& spec, int depth) {
  const int64_t width = spec.width > 0 ? spec.width : 64;
  const auto convolutions = convolutions_of(depth);
  int place = 0;  // index in torchvision's list of convolution, batch norm, ReLU ... and maximum
  for (size_t stage = 0; stage < kVggStages; ++stage) {
    for (int i = 0; i < convolutions[stage]; ++i, place += 3) {
      x = ops::conv(graph, fmt::format("features.{}", place), x,
                    {.out_channels = width << std::min<size_t>(stage, 3),
                     .kernel = ops::in_all(3),
                     .pad = ops::in_all(1),
                     .bias = true,
                     .init = Init::Kind::kaiming_normal_fan_out,
                     .bias_init = Init::Kind::zeros});
      x = ops::batch_norm(graph, fmt::format("features.{}", place + 1), x, spec.mode,
                          {.relu = true});
    }
    x = ops::pool(graph, fmt::format("features.{}", place++), x,
                  {.kind = ops::PoolKind::max, .kernel = ops::in_all(2), .stride = ops::in_all(2)});
  }
  return x;
}

}  // namespace

Value vgg_bn_logits(Graph& graph, Value images, const ModelSpec& spec, int depth) {
  const Shape& shape = graph.shape(images);
  require(shape.rank() == 4 && shape[2] >= kVggShrinks && shape[3] >= kVggShrinks,
          "vgg{}-bn: halves images five times, so it takes [C, H, W] with H and W of {} "
          "or more, met {} with the batch: give larger images or another model",
          depth, kVggShrinks, shape);
  Value x = vgg_features(graph, images, spec, depth);
  const std::vector<int64_t> hidden =
      spec.hidden.empty() ? std::vector<int64_t>{4096, 4096} : spec.hidden;
  int place = 0;  // index in torchvision's list of dense layer, ReLU, dropout
  for (const int64_t outputs : hidden) {
    const auto name = [&](int behind) { return fmt::format("classifier.{}", place + behind); };
    x = ops::dense(graph, name(0), x,
                   {.outputs = outputs,
                    .dtype = spec.activations,
                    .init = Init::Kind::kaiming_normal_fan_in,
                    .bias_init = Init::Kind::zeros});
    x = ops::relu(graph, name(1), x);
    x = ops::dropout(graph, name(2), x, spec.dropout.value_or(0.5f), spec.mode);
    place += 3;
  }
  return ops::dense(graph, fmt::format("classifier.{}", place), x,
                    {.outputs = spec.classes, .bias_init = Init::Kind::zeros});
}

}  // namespace tutti::models
