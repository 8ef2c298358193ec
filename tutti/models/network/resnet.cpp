#include "tutti/models/network/resnet.h"

#include <array>

namespace tutti::models {
namespace {

using Shortcut = ModelSpec::Shortcut;

/// Holds the settings that are the same in every block.
struct Style {
  ops::Mode mode = ops::Mode::train;
  Shortcut shortcut = Shortcut::A;
  std::string projection;  ///< name of shortcut B within a block
  bool bottleneck = false;
};

struct BlockShape {
  int64_t channels = 0;  ///< channels of the 3x3 convolutions
  int64_t stride = 1;
};

struct ConvShape {
  int64_t channels = 0, kernel = 3, stride = 1;
};

Value conv_of(Graph& graph, const std::string& name, Value x, ConvShape shape) {
  return ops::conv(graph, name, x,
                   {.out_channels = shape.channels,
                    .kernel = ops::in_all(shape.kernel),
                    .stride = ops::in_all(shape.stride),
                    .pad = ops::in_all(shape.kernel / 2),
                    .init = Init::Kind::kaiming_normal_fan_out});
}

/// Shortcut A: x at every stride-th position, with zero channels in equal numbers before and after.
Value padded_identity(Graph& graph, const std::string& name, Value x, int64_t channels,
                      int64_t stride) {
  const Shape shape = graph.shape(x);
  if (stride > 1)
    x = ops::slice(graph, name + ".slice", x,
                   {{0, shape[1], 1}, {0, shape[2], stride}, {0, shape[3], stride}});
  const int64_t missing = channels - shape[1];
  if (missing == 0) return x;
  return ops::pad(graph, name + ".pad", x, {missing / 2, 0, 0}, {missing - missing / 2, 0, 0});
}

Value shortcut_of(Graph& graph, const std::string& block, Value x, const Style& style,
                  ConvShape shape) {
  if (shape.stride == 1 && graph.shape(x)[1] == shape.channels) return x;
  const std::string name = block + "." + style.projection;
  if (style.shortcut == Shortcut::A)
    return padded_identity(graph, name, x, shape.channels, shape.stride);
  const Value y = conv_of(graph, name + ".0", x, shape);
  return ops::batch_norm(graph, name + ".1", y, style.mode);
}

/// Two 3x3 convolutions, or 1x1, 3x3, 1x1 with four times the channels at the end.
Value block(Graph& graph, const std::string& name, Value x, const Style& style, BlockShape shape) {
  const int64_t out_channels = style.bottleneck ? 4 * shape.channels : shape.channels;
  const auto layer = [&](int i, Value in, ConvShape conv, const ops::BatchNormSpec& norm) {
    const Value y = conv_of(graph, fmt::format("{}.conv{}", name, i), in, conv);
    return ops::batch_norm(graph, fmt::format("{}.bn{}", name, i), y, style.mode, norm);
  };
  const Value residual = shortcut_of(
      graph, name, x, style, {.channels = out_channels, .kernel = 1, .stride = shape.stride});
  if (!style.bottleneck) {
    const Value y = layer(1, x, {shape.channels, 3, shape.stride}, {.relu = true});
    return layer(2, y, {out_channels, 3, 1}, {.relu = true, .residual = residual});
  }
  Value y = layer(1, x, {shape.channels, 1, 1}, {.relu = true});
  y = layer(2, y, {shape.channels, 3, shape.stride}, {.relu = true});
  return layer(3, y, {out_channels, 1, 1}, {.relu = true, .residual = residual});
}

/// Stages "layer1", "layer2", ... of counts[i] blocks; each but the first halves the image and
/// doubles the channels.
Value stages(Graph& graph, Value x, const Style& style, int64_t width,
             const std::vector<int>& counts) {
  for (size_t s = 0; s < counts.size(); ++s)
    for (int b = 0; b < counts[s]; ++b)
      x = block(graph, fmt::format("layer{}.{}", s + 1, b), x, style,
                {.channels = width << s, .stride = s > 0 && b == 0 ? 2 : 1});
  return x;
}

/// Blocks of each stage (He et al. 2015, table 1).
std::vector<int> imagenet_blocks(int depth) {
  switch (depth) {
    case 18: return {2, 2, 2, 2};
    case 34:
    case 50: return {3, 4, 6, 3};
    case 101: return {3, 4, 23, 3};
    default: CHECK(depth == 152, "depth {}", depth); return {3, 8, 36, 3};
  }
}

}  // namespace

Value cifar_resnet_logits(Graph& graph, Value images, const ModelSpec& spec, int depth) {
  CHECK(depth % 6 == 2, "depth {} is not 6n + 2", depth);
  const int64_t width = spec.width > 0 ? spec.width : 16;
  const Style style{
      .mode = spec.mode, .shortcut = spec.shortcut.value_or(Shortcut::A), .projection = "shortcut"};
  Value x = conv_of(graph, "conv1", images, {width, 3, 1});
  x = ops::batch_norm(graph, "bn1", x, spec.mode, {.relu = true});
  x = stages(graph, x, style, width, std::vector<int>(3, (depth - 2) / 6));
  return ops::dense(graph, "linear", ops::global_average_pool(graph, "avgpool", x),
                    {.outputs = spec.classes});
}

Value imagenet_resnet_logits(Graph& graph, Value images, const ModelSpec& spec, int depth) {
  const int64_t width = spec.width > 0 ? spec.width : 64;
  const Style style{.mode = spec.mode,
                    .shortcut = spec.shortcut.value_or(Shortcut::B),
                    .projection = "downsample",
                    .bottleneck = depth >= 50};
  Value x = conv_of(graph, "conv1", images, {width, 7, 2});
  x = ops::batch_norm(graph, "bn1", x, spec.mode, {.relu = true});
  x = ops::pool(graph, "maxpool", x,
                {.kind = ops::PoolKind::max,
                 .kernel = ops::in_all(3),
                 .stride = ops::in_all(2),
                 .pad_low = ops::in_all(1),
                 .pad_high = ops::in_all(1)});
  x = stages(graph, x, style, width, imagenet_blocks(depth));
  return ops::dense(graph, "fc", ops::global_average_pool(graph, "avgpool", x),
                    {.outputs = spec.classes});
}

}  // namespace tutti::models
