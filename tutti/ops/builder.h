#pragma once
// The functions that models are written with. Each appends nodes to a graph and creates the
// parameters it needs under PyTorch's names (NAME.weight, NAME.bias, NAME.running_mean,
// NAME.running_var), so that weights can be exchanged. All throw ConfigError naming the layer if
// shapes do not fit.

#include <optional>
#include <string>
#include <vector>

#include "tutti/graph/autodiff.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/power_spectrum.h"
#include "tutti/ops/shape_ops.h"

namespace tutti::ops {

enum class Mode : uint8_t { train, eval };

/// Returns the same number for every spatial dimension.
constexpr std::array<int64_t, 3> in_all(int64_t n) { return {n, n, n}; }

struct ConvSpec {
  int64_t out_channels = 0;
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
  std::optional<std::array<int64_t, 3>> pad_high{};  ///< set where it differs from pad
  std::array<int64_t, 3> output_pad{0, 0, 0};        ///< conv_transpose only
  int64_t groups = 1;
  bool bias = false;
  std::optional<ActivationAttributes> activation{};  ///< conv only; appended as a node of its own,
                                                     ///< NAME.relu
  Init::Kind init = Init::Kind::uniform_fan_in;      ///< PyTorch's default; its fan is
                                                     ///< that of a plain convolution
  double init_value = 0;  ///< Init::value of the weight, where its kind takes one
  Init::Kind bias_init = Init::Kind::uniform_fan_in;  ///< its fan is the weight's;
                                                      ///< Keras starts at zeros
  double bias_value = 0;                              ///< value of a constant or normal bias
};

/// Convolves in as many dimensions as x has positions in, 1 to 3.
Value conv(Graph& graph, const std::string& name, Value x, const ConvSpec& spec);
/// Depthwise separable convolution: NAME.conv1 convolves every channel by itself with the kernel,
/// stride, dilation and padding of `spec`, then NAME.pointwise is a 1x1 convolution to
/// spec.out_channels with its bias and activation. Both weights start as spec.init says;
/// spec.groups must be 1.
Value separable_conv(Graph& graph, const std::string& name, Value x, const ConvSpec& spec);
Value conv_transpose(Graph& graph, const std::string& name, Value x, const ConvSpec& spec);

struct BatchNormSpec {
  bool relu = false;
  Value residual{};  ///< added before the ReLU, if valid
  NormStatistics statistics{};
};

Value batch_norm(Graph& graph, const std::string& name, Value y, Mode mode,
                 const BatchNormSpec& spec = {});

struct DenseSpec {
  int64_t outputs = 0;
  bool bias = true;
  std::optional<DType> dtype{};  ///< type of the result; default f32
  Init::Kind init = Init::Kind::uniform_fan_in;
  double init_value = 0;  ///< Init::value of the weight, where its kind takes one
  Init::Kind bias_init = Init::Kind::uniform_fan_in;  ///< its fan is the weight's;
                                                      ///< Keras starts at zeros
  double bias_value = 0;                              ///< value of a constant or normal bias
};

Value dense(Graph& graph, const std::string& name, Value x, const DenseSpec& spec);

Value activation(Graph& graph, const std::string& name, Value x, ActivationKind kind,
                 float slope = 0.01f);
Value relu(Graph& graph, const std::string& name, Value x);
Value add(Graph& graph, const std::string& name, Value a, Value b);
Value mul(Graph& graph, const std::string& name, Value a, Value b);
/// Returns factor * x.
Value scale(Graph& graph, const std::string& name, Value x, float factor);
/// Takes `attributes.spatial` from the rank of x.
Value pool(Graph& graph, const std::string& name, Value x, PoolAttributes attributes);
/// Returns logarithms of the power of x [N, C, spatial...] by shells of wave number: [N, C *
/// shells], f32.
Value power_spectrum(Graph& graph, const std::string& name, Value x,
                     PowerSpectrumAttributes attributes = {});
Value global_average_pool(Graph& graph, const std::string& name, Value x);
/// Repeats each element of x [N, C, spatial...] `factors` times in each dimension: nearest
/// neighbours.
Value resize(Graph& graph, const std::string& name, Value x, const std::array<int64_t, 3>& factors);
/// Repeats x [N, C, 1, 1(, 1)] at every position of `spatial`.
Value broadcast(Graph& graph, const std::string& name, Value x, const Shape& spatial);
Value reshape(Graph& graph, const std::string& name, Value x, const Shape& sample);
Value slice(Graph& graph, const std::string& name, Value x, std::vector<SliceRange> ranges);
Value pad(Graph& graph, const std::string& name, Value x, std::vector<int64_t> low,
          std::vector<int64_t> high, float value = 0);
Value concat(Graph& graph, const std::string& name, const std::vector<Value>& parts, int axis = 1);
Value convert(Graph& graph, const std::string& name, Value x, DType dtype);
/// Returns mean + exp(factor * logvar) * noise in training, mean in evaluations. Its salt is a
/// hash of the name.
Value gaussian_sample(Graph& graph, const std::string& name, Value mean, Value logvar, float factor,
                      Mode mode);
/// Appends nothing in eval mode or for probability 0. The salt is a hash of the name.
Value dropout(Graph& graph, const std::string& name, Value x, float probability, Mode mode);
/// Returns `probability` in training, otherwise 0.
inline float in_training(float probability, Mode mode) {
  return mode == Mode::train ? probability : 0;
}

/// The losses are f32 scalars.
Value softmax_cross_entropy(Graph& graph, const std::string& name, Value logits, Value labels,
                            SoftmaxCrossEntropyAttributes attributes = {});
Value pointwise_loss(Graph& graph, const std::string& name, Value prediction, Value target,
                     PointwiseLossAttributes attributes);
Value gaussian_kl(Graph& graph, const std::string& name, Value mean, Value logvar, float scale = 1);

/// Calls graph/autodiff.h's differentiate with gradients summed by Add, for all parameters or for
/// some.
std::vector<Value> differentiate(Graph& graph, std::span<const Value> losses);
std::vector<Value> differentiate(Graph& graph, std::span<const Value> losses,
                                 std::span<const Value> trained,
                                 std::vector<graph::RowGradient>* tables = nullptr,
                                 std::vector<Value>* gradients = nullptr);

}  // namespace tutti::ops
