#include "tutti/models/network/cosmoflow.h"

namespace tutti::models {
namespace {

constexpr int kConvolutions = 5;
constexpr ops::ActivationAttributes kLeakyRelu{ops::ActivationKind::leaky_relu,
                                               0.3f};  // Keras's slope

void require_volume(const Shape& x) {
  const int64_t step = int64_t{1} << kConvolutions;
  require(x.rank() == 5 && x[2] >= step && x[2] % step == 0 && x[3] == x[2] && x[4] == x[2],
          "cosmoflow: takes volumes [channels, S, S, S] with S a multiple of {}, met {} with the "
          "batch",
          step, x);
}

Value volume_layer(Graph& graph, int layer, Value x, const CosmoFlowSpec& spec) {
  x = ops::conv(graph, fmt::format("conv{}", layer), x,
                {.out_channels = spec.channels << (layer - 1),
                 .kernel = ops::in_all(spec.kernel),
                 .pad = ops::in_all((spec.kernel - 1) / 2),
                 .pad_high = ops::in_all(spec.kernel / 2),
                 .bias = true,
                 .activation = kLeakyRelu,
                 .init = Init::Kind::glorot_uniform,
                 .bias_init = Init::Kind::zeros});
  return ops::pool(
      graph, fmt::format("pool{}", layer), x,
      {.kind = ops::PoolKind::max, .kernel = ops::in_all(2), .stride = ops::in_all(2)});
}

}  // namespace

Value cosmoflow_prediction(Graph& graph, Value volume, const CosmoFlowSpec& spec) {
  require_volume(graph.shape(volume));
  const DType dtype = graph.type(volume).desc.dtype;
  Value x = volume;
  for (int layer = 1; layer <= kConvolutions; ++layer) x = volume_layer(graph, layer, x, spec);
  int layer = 1;
  const auto next = [&](int64_t outputs, DType result) {
    return ops::dense(graph, fmt::format("fc{}", layer), x,
                      {.outputs = outputs,
                       .dtype = result,
                       .init = Init::Kind::glorot_uniform,
                       .bias_init = Init::Kind::zeros});
  };
  for (const int64_t outputs : spec.hidden) {
    x = next(outputs, dtype);
    x = ops::activation(graph, fmt::format("fc{}.leaky_relu", layer), x, kLeakyRelu.kind,
                        kLeakyRelu.slope);
    x = ops::dropout(graph, fmt::format("fc{}.dropout", layer), x, spec.dropout, spec.mode);
    ++layer;
  }
  x = ops::activation(graph, fmt::format("fc{}.tanh", layer), next(spec.outputs, DType::f32),
                      ops::ActivationKind::tanh);
  return ops::scale(graph, "prediction", x, 1.2f);
}

}  // namespace tutti::models
