#include "tutti/models/network/deepcam.h"

#include "tutti/ops/conv.h"

namespace tutti::models {
namespace {

constexpr auto kEncoderInit = Init::Kind::kaiming_normal_fan_in;

struct AtrousConv {
  int64_t channels = 0, kernel = 3, stride = 1, dilation = 1;
};

/// A block of the encoder: `convolutions` separable ones with batch norm, ReLU between them, then
/// optionally one more without batch norm, and a skip connection.
struct XceptionBlock {
  int64_t channels = 0;
  int convolutions = 2;
  int64_t stride = 1;      ///< stride of the last convolution, which has no batch norm, and of the
                           ///< skip
  bool grow_first = true;  ///< the first convolution changes the width; else the last
  bool bare_end = false;   ///< ends in a convolution without batch norm
  bool relu = true;        ///< after the sum
};

/// Holds the settings that all layers of one network share.
class Layers {
 public:
  Layers(Graph& graph, const DeepCamSpec& spec) : graph_(graph), spec_(spec) {}

  Graph& graph() const { return graph_; }
  int64_t width(int64_t full) const { return (full + spec_.divisor - 1) / spec_.divisor; }
  int64_t channels(Value x) const { return graph_.shape(x)[1]; }

  ops::ConvSpec spec_of(const AtrousConv& shape, Init::Kind init) const {
    return {.out_channels = shape.channels,
            .kernel = ops::in_all(shape.kernel),
            .stride = ops::in_all(shape.stride),
            .dilation = ops::in_all(shape.dilation),
            .pad = ops::in_all(shape.dilation * (shape.kernel - 1) / 2),
            .init = init};
  }
  Value separable(const std::string& name, Value x, const AtrousConv& shape) const {
    return ops::separable_conv(graph_, name, x, spec_of(shape, kEncoderInit));
  }
  /// The reference wraps every batch norm in a module with the member "bn".
  Value norm(const std::string& name, Value x,
             const ops::BatchNormSpec& spec = {.relu = true}) const {
    return ops::batch_norm(graph_, name + ".bn", x, spec_.mode, spec);
  }
  struct Names {
    std::string conv, norm;
  };
  Value conv_norm_relu(const Names& names, Value x, const AtrousConv& shape,
                       Init::Kind init = Init::Kind::uniform_fan_in) const {
    return norm(names.norm, conv(graph_, names.conv, x, spec_of(shape, init)));
  }
  /// Doubles height and width.
  Value deconv(const std::string& name, Value x, int64_t outputs) const {
    return ops::conv_transpose(graph_, name, x,
                               {.out_channels = outputs,
                                .kernel = ops::in_all(3),
                                .stride = ops::in_all(2),
                                .pad = ops::in_all(1),
                                .output_pad = ops::in_all(1)});
  }
  Value block(const std::string& name, Value x, const XceptionBlock& shape) const;

 private:
  Graph& graph_;
  const DeepCamSpec& spec_;
};

Value Layers::block(const std::string& name, Value x, const XceptionBlock& shape) const {
  const int64_t inputs = channels(x);
  const bool projected = shape.stride != 1 || shape.channels != inputs;
  CHECK(shape.bare_end ? projected : shape.stride == 1, "{}: stride {}", name, shape.stride);
  Value y = x;
  for (int i = 0; i < shape.convolutions; ++i) {
    // The reference lists convolution, batch norm, ReLU, convolution...
    const bool last = i + 1 == shape.convolutions, grown = shape.grow_first || last;
    y = separable(fmt::format("{}.rep.{}", name, 3 * i), y, {grown ? shape.channels : inputs});
    const ops::BatchNormSpec plain{.relu = !last}, closing{.relu = shape.relu, .residual = x};
    y = norm(fmt::format("{}.rep.{}", name, 3 * i + 1), y, last && !projected ? closing : plain);
  }
  if (!projected) return y;
  if (shape.bare_end)
    y = separable(fmt::format("{}.rep.{}", name, 3 * shape.convolutions - 1), y,
                  {.channels = shape.channels, .stride = shape.stride});
  const Value skip = ops::conv(
      graph_, name + ".skip", x,
      spec_of({.channels = shape.channels, .kernel = 1, .stride = shape.stride}, kEncoderInit));
  return norm(name + ".skipbn", skip, {.relu = shape.relu, .residual = y});
}

struct Features {
  Value high;  ///< 1/16 of the fields' extents
  Value low;   ///< 1/4
};

Features xception(const Layers& layers, Value x, const DeepCamSpec& spec) {
  const std::string encoder = "xception_features.";
  const auto width = [&](int64_t full) { return layers.width(full); };
  const auto first = [&](int i, int64_t channels, int64_t stride) {
    return layers.conv_norm_relu(
        {fmt::format("{}conv{}", encoder, i), fmt::format("{}bn{}", encoder, i)}, x,
        {.channels = channels, .stride = stride}, kEncoderInit);
  };
  x = first(1, width(32), 2);
  x = first(2, width(64), 1);
  int number = 1;
  const auto block = [&](const XceptionBlock& shape) {
    return layers.block(fmt::format("{}block{}", encoder, number++), x, shape);
  };
  // The ReLU after block1 works in place in the reference, so the decoder reads its result, too.
  const Value low = x = block({.channels = width(128), .stride = 2, .bare_end = true});
  x = block({.channels = width(256), .stride = 2, .bare_end = true});
  x = block({.channels = width(728), .stride = 2, .bare_end = true});
  for (int i = 0; i < spec.middle_blocks; ++i)
    x = block({.channels = width(728), .convolutions = 3});
  number = 20;  // the name is fixed, however many blocks there are
  x = block({.channels = width(1024), .grow_first = false, .bare_end = true, .relu = false});
  int i = 3;
  for (const int64_t full : {1536, 1536, 2048}) {
    x = layers.separable(fmt::format("{}conv{}", encoder, i), x,
                         {.channels = width(full), .dilation = 2});
    x = layers.norm(fmt::format("{}bn{}", encoder, i), x);
    ++i;
  }
  return {x, low};
}

/// y = weight * x + bias per channel, then ReLU: a convolution of 1x1 whose groups are channels.
Value affine_relu(Graph& graph, const std::string& name, Value x) {
  const int64_t channels = graph.shape(x)[1];
  const Value weights =
      graph.parameter(name + ".weights", {channels, 1, 1, 1}, Init{Init::Kind::ones, 0});
  const Value bias = graph.parameter(name + ".bias", {channels}, Init{Init::Kind::zeros, 0});
  return graph.append1(name,
                       std::make_shared<ops::Conv>(ops::ConvAttributes{.groups = channels}, true,
                                                   ops::ActivationAttributes{}),
                       {x, weights, bias});
}

/// Adds the image's average over all positions, repeated at every position.
Value image_pooling(const Layers& layers, const std::string& name, Value x) {
  Graph& graph = layers.graph();
  const Shape shape = graph.shape(x);
  Value y = ops::reshape(graph, name + ".0.map", ops::global_average_pool(graph, name + ".0", x),
                         {shape[1], 1, 1});
  y = ops::conv(
      graph, name + ".1", y,
      layers.spec_of({.channels = layers.width(256), .kernel = 1}, Init::Kind::uniform_fan_in));
  return ops::broadcast(graph, "bottleneck.tile", affine_relu(graph, name + ".2", y),
                        {shape[2], shape[3]});
}

/// Atrous spatial pyramid pooling.
Value bottleneck(const Layers& layers, Value x) {
  const int64_t width = layers.width(256);
  std::vector<Value> branches;
  for (const int64_t rate : {1, 6, 12, 18}) {
    const std::string name = fmt::format("bottleneck.aspp{}", branches.size() + 1);
    branches.push_back(layers.conv_norm_relu(
        {name + ".atrous_convolution", name + ".bn"}, x,
        {.channels = width, .kernel = rate == 1 ? 1 : 3, .dilation = rate}, kEncoderInit));
  }
  branches.push_back(image_pooling(layers, "bottleneck.global_avg_pool.global_average_pool", x));
  return layers.conv_norm_relu({"bottleneck.conv", "bottleneck.bn"},
                               ops::concat(layers.graph(), "bottleneck.concat", branches),
                               {.channels = width, .kernel = 1});
}

Value decoder(const Layers& layers, const Features& features, int64_t classes) {
  Graph& graph = layers.graph();
  const int64_t width = layers.width(256);
  const Value low = layers.conv_norm_relu({"conv2", "bn2"}, features.low,
                                          {.channels = layers.width(48), .kernel = 1});
  const auto doubled = [&](const std::string& list, int place, Value in) {
    const Value y = layers.deconv(fmt::format("upsample.{}.{}", list, place), in, width);
    return layers.norm(fmt::format("upsample.{}.{}", list, place + 1), y);
  };
  Value x = doubled("deconv1", 3, doubled("deconv1", 0, features.high));
  x = ops::concat(graph, "upsample.concat", {x, low});
  for (const int place : {0, 3})
    x = layers.conv_norm_relu(
        {fmt::format("upsample.conv1.{}", place), fmt::format("upsample.conv1.{}", place + 1)}, x,
        {.channels = width});
  x = ops::conv(graph, "upsample.conv1.6", x, {.out_channels = width, .bias = true});
  return layers.deconv("upsample.last_deconv.0", doubled("deconv2", 0, x), classes);
}

}  // namespace

Value deepcam_logits(Graph& graph, Value fields, const DeepCamSpec& spec) {
  const Shape& x = graph.shape(fields);
  require(x.rank() == 4 && x[2] % 16 == 0 && x[3] % 16 == 0,
          "deepcam: takes fields [channels, H, W] with H and W multiples of 16, met {} "
          "with the batch",
          x);
  require(
      spec.divisor >= 1 && spec.divisor <= 32 && spec.middle_blocks >= 0 &&
          spec.middle_blocks <= 16,
      "deepcam: the divisor of widths is 1 to 32 and there are 0 to 16 middle blocks, met {} and "
      "{}",
      spec.divisor, spec.middle_blocks);
  const Layers layers(graph, spec);
  Features features = xception(layers, fields, spec);
  features.high = bottleneck(layers, features.high);
  return ops::convert(graph, "logits", decoder(layers, features, spec.classes), DType::f32);
}

}  // namespace tutti::models
