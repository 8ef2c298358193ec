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
  graph::Init::Kind init = graph::Init::Kind::uniform_fan_in;  ///< PyTorch's default; its fan is
                                                               ///< that of a plain convolution
  double init_value = 0;  ///< Init::value of the weight, where its kind takes one
  graph::Init::Kind bias_init = graph::Init::Kind::uniform_fan_in;  ///< its fan is the weight's;
                                                                    ///< Keras starts at zeros
  double bias_value = 0;  ///< value of a constant or normal bias
};

/// Convolves in as many dimensions as x has positions in, 1 to 3.
graph::Value conv(graph::Graph& graph, const std::string& name, graph::Value x,
                  const ConvSpec& spec);
/// Depthwise separable convolution: NAME.conv1 convolves every channel by itself with the kernel,
/// stride, dilation and padding of `spec`, then NAME.pointwise is a 1x1 convolution to
/// spec.out_channels with its bias and activation. Both weights start as spec.init says;
/// spec.groups must be 1.
graph::Value separable_conv(graph::Graph& graph, const std::string& name, graph::Value x,
                            const ConvSpec& spec);
graph::Value conv_transpose(graph::Graph& graph, const std::string& name, graph::Value x,
                            const ConvSpec& spec);

struct BatchNormSpec {
  bool relu = false;
  graph::Value residual{};  ///< added before the ReLU, if valid
  NormStatistics statistics{};
};

graph::Value batch_norm(graph::Graph& graph, const std::string& name, graph::Value y, Mode mode,
                        const BatchNormSpec& spec = {});

struct DenseSpec {
  int64_t outputs = 0;
  bool bias = true;
  std::optional<DType> dtype{};  ///< type of the result; default f32
  graph::Init::Kind init = graph::Init::Kind::uniform_fan_in;
  double init_value = 0;  ///< Init::value of the weight, where its kind takes one
  graph::Init::Kind bias_init = graph::Init::Kind::uniform_fan_in;  ///< its fan is the weight's;
                                                                    ///< Keras starts at zeros
  double bias_value = 0;  ///< value of a constant or normal bias
};

graph::Value dense(graph::Graph& graph, const std::string& name, graph::Value x,
                   const DenseSpec& spec);

graph::Value activation(graph::Graph& graph, const std::string& name, graph::Value x,
                        ActivationKind kind, float slope = 0.01f);
graph::Value relu(graph::Graph& graph, const std::string& name, graph::Value x);
graph::Value add(graph::Graph& graph, const std::string& name, graph::Value a, graph::Value b);
graph::Value mul(graph::Graph& graph, const std::string& name, graph::Value a, graph::Value b);
/// Returns factor * x.
graph::Value scale(graph::Graph& graph, const std::string& name, graph::Value x, float factor);
/// Takes `attributes.spatial` from the rank of x.
graph::Value pool(graph::Graph& graph, const std::string& name, graph::Value x,
                  PoolAttributes attributes);
/// Returns logarithms of the power of x [N, C, spatial...] by shells of wave number: [N, C *
/// shells], f32.
graph::Value power_spectrum(graph::Graph& graph, const std::string& name, graph::Value x,
                            PowerSpectrumAttributes attributes = {});
graph::Value global_average_pool(graph::Graph& graph, const std::string& name, graph::Value x);
/// Repeats each element of x [N, C, spatial...] `factors` times in each dimension: nearest
/// neighbours.
graph::Value resize(graph::Graph& graph, const std::string& name, graph::Value x,
                    const std::array<int64_t, 3>& factors);
/// Repeats x [N, C, 1, 1(, 1)] at every position of `spatial`.
graph::Value broadcast(graph::Graph& graph, const std::string& name, graph::Value x,
                       const Shape& spatial);
graph::Value reshape(graph::Graph& graph, const std::string& name, graph::Value x,
                     const Shape& sample);
graph::Value slice(graph::Graph& graph, const std::string& name, graph::Value x,
                   std::vector<SliceRange> ranges);
graph::Value pad(graph::Graph& graph, const std::string& name, graph::Value x,
                 std::vector<int64_t> low, std::vector<int64_t> high, float value = 0);
graph::Value concat(graph::Graph& graph, const std::string& name,
                    const std::vector<graph::Value>& parts, int axis = 1);
graph::Value convert(graph::Graph& graph, const std::string& name, graph::Value x, DType dtype);
/// Returns mean + exp(factor * logvar) * noise in training, mean in evaluations. Its salt is a
/// hash of the name.
graph::Value gaussian_sample(graph::Graph& graph, const std::string& name, graph::Value mean,
                             graph::Value logvar, float factor, Mode mode);
/// Appends nothing in eval mode or for probability 0. The salt is a hash of the name.
graph::Value dropout(graph::Graph& graph, const std::string& name, graph::Value x,
                     float probability, Mode mode);
/// Returns `probability` in training, otherwise 0.
inline float in_training(float probability, Mode mode) {
  return mode == Mode::train ? probability : 0;
}

/// The losses are f32 scalars.
graph::Value softmax_cross_entropy(graph::Graph& graph, const std::string& name,
                                   graph::Value logits, graph::Value labels,
                                   SoftmaxCrossEntropyAttributes attributes = {});
graph::Value pointwise_loss(graph::Graph& graph, const std::string& name, graph::Value prediction,
                            graph::Value target, PointwiseLossAttributes attributes);
graph::Value gaussian_kl(graph::Graph& graph, const std::string& name, graph::Value mean,
                         graph::Value logvar, float scale = 1);

/// Calls graph/autodiff.h's differentiate with gradients summed by Add, for all parameters or for
/// some.
std::vector<graph::Value> differentiate(graph::Graph& graph, std::span<const graph::Value> losses);
std::vector<graph::Value> differentiate(graph::Graph& graph, std::span<const graph::Value> losses,
                                        std::span<const graph::Value> trained,
                                        std::vector<graph::RowGradient>* tables = nullptr,
                                        std::vector<graph::Value>* gradients = nullptr);

}  // namespace tutti::ops
