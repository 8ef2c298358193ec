// The types of [[model.layer]]: the keys each takes, and the nodes it becomes.

#include <algorithm>

#include "tutti/models/block/layers.h"
#include "tutti/ops/interaction.h"

namespace tutti::models {
namespace {

/// Returns an activation that the op itself ends in.
std::optional<ops::ActivationAttributes> fused(const LayerPlace& place) {
  const auto activation = place.activation();
  return activation && activation->known_from_result() ? activation : std::nullopt;
}

ops::ConvSpec conv_spec(const LayerPlace& place, int64_t channels) {
  ops::ConvSpec spec{.out_channels = channels,
                     .kernel = place.extents("kernel", ops::in_all(1)),
                     .stride = place.extents("stride", ops::in_all(1)),
                     .dilation = place.extents("dilation", ops::in_all(1)),
                     .pad = place.extents("pad", ops::in_all(0)),
                     .output_pad = place.extents("output_pad", ops::in_all(0)),
                     .groups = place.count("groups", 1),
                     .bias = place.flag("bias", true),
                     .init = place.init("init"),
                     .init_value = place.real("init_value", 0),
                     .bias_init = place.init("bias_init"),
                     .bias_value = place.real("bias_value", 0)};
  if (place.has("pad_high")) spec.pad_high = place.extents("pad_high", ops::in_all(0));
  return spec;
}

Value conv_layer(LayerPlace& place) {
  ops::ConvSpec spec = conv_spec(place, place.outputs("channels"));
  spec.activation = fused(place);
  const Value y = ops::conv(place.graph, place.name, place.in[0], spec);
  return spec.activation ? y : place.activated(y);
}

Value depthwise_layer(LayerPlace& place) {
  ops::ConvSpec spec = conv_spec(place, place.graph.shape(place.in[0])[1]);
  spec.groups = spec.out_channels;
  spec.activation = fused(place);
  const Value y = ops::conv(place.graph, place.name, place.in[0], spec);
  return spec.activation ? y : place.activated(y);
}

Value separable_layer(LayerPlace& place) {
  ops::ConvSpec spec = conv_spec(place, place.outputs("channels"));
  spec.activation = fused(place);
  const Value y = ops::separable_conv(place.graph, place.name, place.in[0], spec);
  return spec.activation ? y : place.activated(y);
}

Value transposed_layer(LayerPlace& place) {
  return place.activated(ops::conv_transpose(place.graph, place.name, place.in[0],
                                             conv_spec(place, place.outputs("channels"))));
}

Value dense_layer(LayerPlace& place) {
  return place.activated(
      ops::dense(place.graph, place.name, place.in[0],
                 {.outputs = place.outputs("outputs"),
                  .bias = place.flag("bias", true),
                  .dtype = place.predicts() ? DType::f32 : place.spec.activations,
                  .init = place.init("init"),
                  .init_value = place.real("init_value", 0),
                  .bias_init = place.init("bias_init"),
                  .bias_value = place.real("bias_value", 0)}));
}

Value batch_norm_layer(LayerPlace& place) {
  const auto activation = place.activation();
  const bool relu = activation && activation->kind == ops::ActivationKind::relu;
  const Value y =
      ops::batch_norm(place.graph, place.name, place.in[0], place.spec.mode,
                      {.relu = relu,
                       .statistics = {.epsilon = place.real("epsilon", 1e-5f),
                                      .momentum = place.real("momentum", 0.1f),
                                      .running = place.word("statistics") == "running"}});
  return relu ? y : place.activated(y);
}

Value activation_layer(LayerPlace& place) {
  const auto a = place.activation();
  require(a.has_value(), "layer '{}' needs activation", place.name);
  return ops::activation(place.graph, place.name, place.in[0], a->kind, a->slope);
}

Value pool_layer(LayerPlace& place) {
  require(place.has("kernel"), "layer '{}' needs kernel, the side of its window", place.name);
  const auto kernel = place.extents("kernel", ops::in_all(1)),
             pad = place.extents("pad", ops::in_all(0));
  return ops::pool(
      place.graph, place.name, place.in[0],
      {.kind = place.word("kind") == "average" ? ops::PoolKind::average : ops::PoolKind::max,
       .kernel = kernel,
       .stride = place.extents("stride", kernel),
       .pad_low = pad,
       .pad_high = place.extents("pad_high", pad),
       .count_include_pad = place.flag("count_pad", true)});
}

Value global_average_layer(LayerPlace& place) {
  return ops::global_average_pool(place.graph, place.name, place.in[0]);
}

void require_positions(const LayerPlace& place) {
  if (place.spatial() < 1)
    throw ConfigError(fmt::format("layer '{}': its input {} has no positions", place.name,
                                  place.graph.shape(place.in[0])));
}

Value power_spectrum_layer(LayerPlace& place) {
  require_positions(place);
  return ops::power_spectrum(place.graph, place.name, place.in[0],
                             {.floor = place.real("floor", 1e-6f)});
}

/// Broadcasts a global average, which is a row of numbers, over positions again.
Value broadcast_layer(LayerPlace& place) {
  const Shape &x = place.graph.shape(place.in[0]), &like = place.graph.shape(place.in[1]);
  require(like.rank() >= 3, "layer '{}': its second input {} has no positions", place.name, like);
  std::vector<int64_t> one(static_cast<size_t>(like.rank() - 1), 1);
  one[0] = x.elements_from(1);
  const Value point = x.rank() == like.rank()
                          ? place.in[0]
                          : ops::reshape(place.graph, place.name + ".reshape", place.in[0],
                                         Shape(std::span<const int64_t>(one)));
  return ops::broadcast(place.graph, place.name, point,
                        Shape(std::span(like.begin() + 2, like.end())));
}

/// Appends fc2(relu(fc1(mean))) of the channels' means, and multiplies the channels by its sigmoid
/// (Hu, Shen, Sun: Squeeze-and-excitation networks, CVPR 2018). Names are torchvision's.
Value squeeze_excitation_layer(LayerPlace& place) {
  Graph& graph = place.graph;
  const Value x = place.in[0];
  const Shape shape = graph.shape(x);
  const int64_t channels = shape[1], squeezed = channels / place.count("reduction", 16);
  require(place.spatial() >= 2,
          "layer '{}': its input {} has no two or three dimensions of positions", place.name,
          shape);
  require(squeezed != 0, "layer '{}': reduction is more than the {} channels of its input",
          place.name, channels);
  const auto row = [&](const char* name, Value from, int64_t outputs, ops::ActivationKind kind) {
    const std::string full = place.name + name;
    const ops::DenseSpec spec{.outputs = outputs, .dtype = place.spec.activations};
    return ops::activation(graph, fmt::format("{}.{}", full, name_of(kind)),
                           ops::dense(graph, full, from, spec), kind);
  };
  const Value mean = ops::global_average_pool(graph, place.name + ".avgpool", x);
  const Value inner = row(".fc1", mean, squeezed, ops::ActivationKind::relu);
  const Value gate = row(".fc2", inner, channels, ops::ActivationKind::sigmoid);
  std::vector<int64_t> point(static_cast<size_t>(shape.rank() - 1), 1);
  point[0] = channels;
  const Value at_point = ops::reshape(graph, place.name + ".broadcast.reshape", gate,
                                      Shape(std::span<const int64_t>(point)));
  return ops::mul(graph, place.name, x,
                  ops::broadcast(graph, place.name + ".broadcast", at_point,
                                 Shape(std::span(shape.begin() + 2, shape.end()))));
}

Value resize_layer(LayerPlace& place) {
  require(place.has("factors"), "layer '{}' needs factors, how often an element is repeated",
          place.name);
  require_positions(place);
  return ops::resize(place.graph, place.name, place.in[0],
                     place.extents("factors", ops::in_all(1)));
}

Value dropout_layer(LayerPlace& place) {
  return ops::dropout(place.graph, place.name, place.in[0], place.real("probability", 0.5f),
                      place.spec.mode);
}

Value flatten_layer(LayerPlace& place) {
  return ops::reshape(place.graph, place.name, place.in[0],
                      Shape{place.graph.shape(place.in[0]).elements_from(1)});
}

Value reshape_layer(LayerPlace& place) {
  return ops::reshape(place.graph, place.name, place.in[0], place.shape());
}

Value scale_layer(LayerPlace& place) {
  return ops::scale(place.graph, place.name, place.in[0], place.real("factor", 1));
}

/// Converts inputs to one type: layers that give rows in f32 (dense ones, spectra) may stand beside
/// bf16 ones.
std::vector<Value> of_one_type(LayerPlace& place) {
  const auto type = [&](Value v) { return place.graph.type(v).desc.dtype; };
  std::vector<Value> in = place.in;
  if (std::ranges::all_of(in, [&](Value v) { return type(v) == type(in[0]); })) return in;
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = ops::convert(place.graph, fmt::format("{}.f32.{}", place.name, i), in[i], DType::f32);
  return in;
}

/// Combines more than two inputs from left to right.
template <Value (*combine)(Graph&, const std::string&, Value, Value)>
Value combined(LayerPlace& place) {
  const std::vector<Value> in = of_one_type(place);
  Value y = in[0];
  for (size_t i = 1; i < in.size(); ++i)
    y = combine(place.graph, i + 1 == in.size() ? place.name : fmt::format("{}.{}", place.name, i),
                y, in[i]);
  return place.activated(y);
}

Value concat_layer(LayerPlace& place) {
  return ops::concat(place.graph, place.name, of_one_type(place));
}

/// Joins the inputs to one row of features, of which all pairs are multiplied.
Value interaction_layer(LayerPlace& place) {
  const std::vector<Value> in = of_one_type(place);
  const Shape& first = place.graph.shape(in[0]);
  for (const Value v : in) {
    const Shape& x = place.graph.shape(v);
    require(x.rank() == 2 && x[1] == first[1],
            "layer '{}' multiplies rows of equally many numbers; its inputs "
            "are {} and {}",
            place.name, first, x);
  }
  const Value row = ops::concat(place.graph, place.name + ".concat", in);
  return place.graph.append1(place.name,
                             std::make_shared<ops::Interaction>(
                                 ops::InteractionAttributes{first[1], place.flag("itself", false)}),
                             {row});
}

std::vector<LayerType> all_types() {
  constexpr int kMany = 64;
  const auto with = [](std::vector<std::string> keys, std::vector<std::string> more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  };
  const std::vector<std::string> window = {"kernel", "stride", "pad", "pad_high", "dilation"},
                                 start = {"bias",       "init",       "init_value", "bias_init",
                                          "bias_value", "activation", "slope"};
  return {
      {"conv", "Convolution in two or three dimensions, as its input has",
       with({"channels", "groups"}, with(window, start)), conv_layer},
      {"depthwise_conv", "Convolution of each channel by itself", with(window, start),
       depthwise_layer},
      {"separable_conv",
       "Convolution of each channel by itself (NAME.conv1), then of 1x1 (NAME.pointwise)",
       with({"channels"}, with(window, start)), separable_layer},
      {"transposed_conv", "Transposed convolution: `stride` makes the result larger",
       with({"channels", "groups", "output_pad"}, with(window, start)), transposed_layer},
      {"dense", "Every output depends on every number of a sample", with({"outputs"}, start),
       dense_layer},
      {"batch_norm",
       "Batch normalisation of each channel",
       {"epsilon", "momentum", "statistics", "activation", "slope"},
       batch_norm_layer},
      {"activation", "A nonlinearity", {"activation", "slope"}, activation_layer},
      {"pool",
       "Maximum or average of windows",
       {"kind", "kernel", "stride", "pad", "pad_high", "count_pad"},
       pool_layer},
      {"global_average",
       "Average over all positions: one number a channel",
       {},
       global_average_layer},
      {"power_spectrum",
       "How strong the waves of each length are in periodic fields, which have no rim: of each "
       "channel, one after the other, floor(L / 2) numbers for wave numbers 1, 2, ... in the "
       "longest "
       "extent L. Each is log(floor + mean of |X|^2 / positions) with X of the discrete Fourier "
       "transform; the mean of white noise's is its variance. The field's mean is not among them. "
       "A "
       "sample is read as a whole: threads share samples, and ranks that share one all compute it",
       {"floor"},
       power_spectrum_layer},
      {"broadcast",
       "The first input, one number a channel, at each position of the second",
       {},
       broadcast_layer,
       2,
       2},
      {"squeeze_excitation",
       "Weighs the channels: each is multiplied by a number between 0 and 1 that two dense layers, "
       "NAME.fc1 and NAME.fc2, make of the averages of all channels over their positions",
       {"reduction"},
       squeeze_excitation_layer},
      {"resize",
       "Each element several times in each dimension: the nearest neighbour's value",
       {"factors"},
       resize_layer},
      {"dropout", "Leaves elements out while training", {"probability"}, dropout_layer},
      {"flatten", "A sample as one row of numbers", {}, flatten_layer},
      {"reshape", "A sample's numbers in another shape", {"shape"}, reshape_layer},
      {"scale", "Multiplies by a number", {"factor"}, scale_layer},
      {"add",
       "The sum of its inputs: a residual connection",
       {"activation", "slope"},
       combined<ops::add>,
       2,
       kMany},
      {"mul",
       "The product of its inputs, element by element",
       {"activation", "slope"},
       combined<ops::mul>,
       2,
       kMany},
      {"concat", "The channels of its inputs, one after the other", {}, concat_layer, 2, kMany},
      {"interaction",
       "The dot products of all pairs of its inputs, which are rows of equally many numbers: of "
       "the "
       "second and the first, the third and the first, the third and the second, ...",
       {"itself"},
       interaction_layer,
       2,
       kMany},
  };
}

}  // namespace

const std::vector<LayerType>& layer_types() {
  static const std::vector<LayerType> types = all_types();
  return types;
}

const LayerType* find_layer_type(std::string_view name) {
  const auto found = std::ranges::find(layer_types(), name, &LayerType::name);
  return found == layer_types().end() ? nullptr : &*found;
}

}  // namespace tutti::models
