#include "tutti/models/network/cosmoflow_small.h"

namespace tutti::models {
namespace {

constexpr int kStages = 5;

void require_halves(const Shape& x) {
  const int64_t step = int64_t{1} << kStages;
  require(x.rank() == 5 && x[2] >= step && x[2] % step == 0 && x[3] == x[2] && x[4] == x[2],
          "cosmoflow-small: takes volumes [channels, S, S, S] with S a multiple of {}, met {} with "
          "the batch",
          step, x);
}

Value halved(Graph& graph, int stage, Value x, int64_t channels, ops::Mode mode) {
  x = ops::conv(graph, fmt::format("conv{}", stage), x,
                {.out_channels = channels,
                 .kernel = ops::in_all(3),
                 .stride = ops::in_all(2),
                 .pad = ops::in_all(1),
                 .pad_high = ops::in_all(0),
                 .init = Init::Kind::kaiming_normal_fan_in});
  return ops::batch_norm(graph, fmt::format("bn{}", stage), x, mode, {.relu = true});
}

}  // namespace

Value cosmoflow_small_prediction(Graph& graph, Value volume, const CosmoFlowSmallSpec& spec) {
  require_halves(graph.shape(volume));
  Value x = volume;
  std::vector<Value> means;
  int64_t features = 0;
  for (int stage = 1; stage <= kStages; ++stage) {
    const int64_t channels = stage == 1 ? spec.channels : 2 * spec.channels;
    x = halved(graph, stage, x, channels, spec.mode);
    means.push_back(ops::global_average_pool(graph, fmt::format("mean{}", stage), x));
    features += channels;
  }
  // Means differ little from sample to sample; normalisation makes the differences visible.
  x = ops::reshape(graph, "means", ops::concat(graph, "mean", means), {features, 1, 1, 1});
  x = ops::batch_norm(graph, "bn", x, spec.mode);
  int layer = 1;
  for (const int64_t outputs : spec.hidden) {
    const std::string name = fmt::format("fc{}", layer++);
    x = ops::relu(graph, name + ".relu", ops::dense(graph, name, x, {.outputs = outputs}));
  }
  return ops::dense(graph, fmt::format("fc{}", layer), x,
                    {.outputs = spec.outputs, .dtype = DType::f32});
}

}  // namespace tutti::models
