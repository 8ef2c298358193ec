#include "tutti/ops/builder.h"

#include "tutti/ops/batch_norm.h"
#include "tutti/ops/broadcast.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/conv_transpose.h"
#include "tutti/ops/dense.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/gaussian_sample.h"
#include "tutti/ops/reorder.h"
#include "tutti/ops/resize.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

ConvAttributes conv_attributes(const ConvSpec& spec, int spatial) {
  return {.spatial = spatial,
          .stride = spec.stride,
          .dilation = spec.dilation,
          .pad_low = spec.pad,
          .pad_high = spec.pad_high.value_or(spec.pad),
          .groups = spec.groups};
}

/// Returns the number of spatial dimensions of x, `least` to 3.
int spatial_of(const Graph& graph, const std::string& name, Value x, int least = 2) {
  const Shape& shape = graph.shape(x);
  const auto extents = std::span(shape.begin(), shape.end()).subspan(1);  // a sample's extents
  require(
      shape.rank() >= least + 2 && shape.rank() <= 5,
      "layer '{}': a sample of its input '{}' is {}, and {} to 4 axes are needed: channels, then "
      "positions; of a field, 'as' in its line of data.fields gives it other extents",
      name, graph[x].name, extents.empty() ? "one number" : Shape(extents).to_string(), least + 1);
  return shape.rank() - 2;
}

Shape weight_shape(int64_t out, int64_t in, const ConvSpec& spec, int spatial) {
  std::vector<int64_t> extents{out, in};
  extents.insert(extents.end(), spec.kernel.begin(), spec.kernel.begin() + spatial);
  return Shape(std::span<const int64_t>(extents));
}

struct BiasShape {
  int64_t count, fan_in;
};

/// Adds the bias of a layer whose weight has this fan.
template <class Spec>
Value bias_parameter(Graph& graph, const std::string& name, const Spec& spec, BiasShape shape) {
  const bool by_fan = spec.bias_init == Init::Kind::uniform_fan_in;
  require(by_fan || spec.bias_init == Init::Kind::zeros || spec.bias_init == Init::Kind::constant ||
              spec.bias_init == Init::Kind::normal,
          "layer '{}': a bias starts with zeros, constant, normal or uniform_fan_in", name);
  return graph.parameter(name + ".bias", Shape{shape.count},
                         Init{spec.bias_init, by_fan ? shape.fan_in : 0, spec.bias_value});
}

}  // namespace

Value conv(Graph& graph, const std::string& name, Value x, const ConvSpec& spec) {
  const int spatial = spatial_of(graph, name, x, 1);
  const int64_t channels = graph.shape(x)[1];
  require(spec.out_channels >= 1 && spec.groups >= 1 && channels % spec.groups == 0,
          "layer '{}': {} input and {} output channels do not form {} groups", name, channels,
          spec.out_channels, spec.groups);
  const Shape w = weight_shape(spec.out_channels, channels / spec.groups, spec, spatial);
  std::vector<Value> in{x,
                        graph.parameter(name + ".weight", w, Init{spec.init, 0, spec.init_value})};
  if (spec.bias) in.push_back(bias_parameter(graph, name, spec, {w[0], w.elements_from(1)}));
  const Value y =
      graph.append1(name, std::make_shared<Conv>(conv_attributes(spec, spatial), spec.bias), in);
  if (!spec.activation) return y;
  return graph.append1(fmt::format("{}.{}", name, name_of(spec.activation->kind)),
                       std::make_shared<Activation>(*spec.activation), {y});
}

Value separable_conv(Graph& graph, const std::string& name, Value x, const ConvSpec& spec) {
  require(spec.groups == 1, "layer '{}': a separable convolution with {} groups", name,
          spec.groups);
  ConvSpec depthwise = spec;
  depthwise.out_channels = depthwise.groups = graph.shape(x)[1];
  depthwise.bias = false;
  depthwise.activation.reset();
  return conv(graph, name + ".pointwise", conv(graph, name + ".conv1", x, depthwise),
              {.out_channels = spec.out_channels,
               .bias = spec.bias,
               .activation = spec.activation,
               .init = spec.init,
               .init_value = spec.init_value,
               .bias_init = spec.bias_init,
               .bias_value = spec.bias_value});
}

Value conv_transpose(Graph& graph, const std::string& name, Value x, const ConvSpec& spec) {
  const int spatial = spatial_of(graph, name, x, 1);
  require(!spec.activation, "layer '{}': conv_transpose has no fused activation", name);
  require(spec.out_channels >= 1 && spec.groups >= 1 && spec.out_channels % spec.groups == 0,
          "layer '{}': {} output channels do not form {} groups", name, spec.out_channels,
          spec.groups);
  const Shape w = weight_shape(graph.shape(x)[1], spec.out_channels / spec.groups, spec, spatial);
  std::vector<Value> in{x,
                        graph.parameter(name + ".weight", w, Init{spec.init, 0, spec.init_value})};
  if (spec.bias)
    in.push_back(bias_parameter(graph, name, spec, {spec.out_channels, w.elements_from(1)}));
  return graph.append1(
      name,
      std::make_shared<ConvTranspose>(conv_attributes(spec, spatial), spec.bias, spec.output_pad),
      in);
}

Value batch_norm(Graph& graph, const std::string& name, Value y, Mode mode,
                 const BatchNormSpec& spec) {
  require(graph.shape(y).rank() >= 2, "layer '{}': batch norm of {}", name, graph.shape(y));
  const Shape channels{graph.shape(y)[1]};
  const Value gamma = graph.parameter(name + ".weight", channels, Init{Init::Kind::ones, 0});
  const Value beta = graph.parameter(name + ".bias", channels, Init{Init::Kind::zeros, 0});
  const Value mean = graph.statistic(name + ".running_mean", channels, Init{Init::Kind::zeros, 0});
  const Value var = graph.statistic(name + ".running_var", channels, Init{Init::Kind::ones, 0});
  const bool residual = spec.residual.valid();
  std::vector<Value> in{y, mean, var, gamma, beta};
  OpPtr op;
  if (mode == Mode::train && !spec.statistics.frozen()) {
    const std::vector<Value> stats = graph.append(
        name + ".stats", std::make_shared<BatchNormStats>(spec.statistics), {y, mean, var});
    in[1] = stats[0];
    in[2] = stats[1];
    op = std::make_shared<BatchNormApply>(spec.relu, residual);
  } else {
    op = std::make_shared<BatchNormInference>(spec.relu, residual, spec.statistics.epsilon);
  }
  if (residual) in.push_back(spec.residual);
  return graph.append1(name, op, in);
}

Value dense(Graph& graph, const std::string& name, Value x, const DenseSpec& spec) {
  const int64_t features = graph.shape(x).elements_from(1);
  require(spec.outputs >= 1, "layer '{}': {} outputs", name, spec.outputs);
  std::vector<Value> in{x, graph.parameter(name + ".weight", Shape{spec.outputs, features},
                                           Init{spec.init, 0, spec.init_value})};
  if (spec.bias) in.push_back(bias_parameter(graph, name, spec, {spec.outputs, features}));
  return graph.append1(name, std::make_shared<Dense>(spec.bias, spec.dtype.value_or(DType::f32)),
                       in);
}

Value activation(Graph& graph, const std::string& name, Value x, ActivationKind kind, float slope) {
  return graph.append1(name, std::make_shared<Activation>(ActivationAttributes{kind, slope}), {x});
}

Value relu(Graph& graph, const std::string& name, Value x) {
  return activation(graph, name, x, ActivationKind::relu);
}

Value add(Graph& graph, const std::string& name, Value a, Value b) {
  return graph.append1(name, std::make_shared<Add>(), {a, b});
}

Value mul(Graph& graph, const std::string& name, Value a, Value b) {
  return graph.append1(name, std::make_shared<Mul>(), {a, b});
}

Value scale(Graph& graph, const std::string& name, Value x, float factor) {
  return graph.append1(name, std::make_shared<Scale>(factor), {x});
}

Value pool(Graph& graph, const std::string& name, Value x, PoolAttributes attributes) {
  attributes.spatial = spatial_of(graph, name, x);
  return graph.append1(name, std::make_shared<Pool>(attributes), {x});
}

Value power_spectrum(Graph& graph, const std::string& name, Value x,
                     PowerSpectrumAttributes attributes) {
  return graph.append1(name, std::make_shared<PowerSpectrum>(attributes), {x});
}

Value global_average_pool(Graph& graph, const std::string& name, Value x) {
  return graph.append1(name, std::make_shared<GlobalAveragePool>(), {x});
}

Value resize(Graph& graph, const std::string& name, Value x,
             const std::array<int64_t, 3>& factors) {
  return graph.append1(name, std::make_shared<Resize>(ResizeAttributes{.factor = factors}), {x});
}

Value broadcast(Graph& graph, const std::string& name, Value x, const Shape& spatial) {
  return graph.append1(name, std::make_shared<Broadcast>(spatial), {x});
}

Value reshape(Graph& graph, const std::string& name, Value x, const Shape& sample) {
  return graph.append1(name, std::make_shared<Reshape>(sample), {x});
}

Value slice(Graph& graph, const std::string& name, Value x, std::vector<SliceRange> ranges) {
  return graph.append1(name, std::make_shared<Slice>(std::move(ranges)), {x});
}

Value pad(Graph& graph, const std::string& name, Value x, std::vector<int64_t> low,
          std::vector<int64_t> high, float value) {
  return graph.append1(name, std::make_shared<Pad>(std::move(low), std::move(high), value), {x});
}

Value concat(Graph& graph, const std::string& name, const std::vector<Value>& parts, int axis) {
  return graph.append1(name, std::make_shared<Concat>(axis), parts);
}

Value convert(Graph& graph, const std::string& name, Value x, DType dtype) {
  return graph.type(x).desc.dtype == dtype
             ? x
             : graph.append1(name, std::make_shared<Reorder>(dtype), {x});
}

Value dropout(Graph& graph, const std::string& name, Value x, float probability, Mode mode) {
  if (mode == Mode::eval || probability == 0) return x;
  return graph.append1(name, std::make_shared<Dropout>(probability, salt_of(name)), {x});
}

Value gaussian_sample(Graph& graph, const std::string& name, Value mean, Value logvar, float factor,
                      Mode mode) {
  if (mode == Mode::eval) return mean;
  return graph.append1(name, std::make_shared<GaussianSample>(factor, salt_of(name)),
                       {mean, logvar});
}

Value softmax_cross_entropy(Graph& graph, const std::string& name, Value logits, Value labels,
                            SoftmaxCrossEntropyAttributes attributes) {
  return graph.append1(name, std::make_shared<SoftmaxCrossEntropy>(std::move(attributes)),
                       {logits, labels});
}

Value pointwise_loss(Graph& graph, const std::string& name, Value prediction, Value target,
                     PointwiseLossAttributes attributes) {
  return graph.append1(name, std::make_shared<PointwiseLoss>(attributes), {prediction, target});
}

Value gaussian_kl(Graph& graph, const std::string& name, Value mean, Value logvar, float scale) {
  return graph.append1(name, std::make_shared<GaussianKL>(scale), {mean, logvar});
}

std::vector<Value> differentiate(Graph& graph, std::span<const Value> losses) {
  return differentiate(graph, losses,
                       graph.with_role(Role::parameter));  // tables have no gradient
}

std::vector<Value> differentiate(Graph& graph, std::span<const Value> losses,
                                 std::span<const Value> trained,
                                 std::vector<graph::RowGradient>* tables,
                                 std::vector<Value>* gradients) {
  const auto sum = [](Graph& g, Value a, Value b) {
    return add(g, g[a].name + "+" + g[b].name, a, b);
  };
  return differentiate(graph, losses, trained, sum, tables, gradients);
}

}  // namespace tutti::ops
