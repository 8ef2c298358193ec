#include "tutti/models/block/feed_forward.h"

namespace tutti::models {
namespace {

/// Adds dense layers of the given sizes with ReLU, then the classifier.
Value classify(Graph& graph, Value x, const std::vector<int64_t>& hidden, const ModelSpec& spec) {
  int layer = 1;
  for (const int64_t size : hidden) {
    const std::string name = fmt::format("fc{}", layer++);
    x = ops::relu(graph, name + ".relu",
                  ops::dense(graph, name, x, {.outputs = size, .dtype = spec.activations}));
  }
  return ops::dense(graph, fmt::format("fc{}", layer), x, {.outputs = spec.classes});
}

Value conv_and_pool(Graph& graph, int layer, Value x, int64_t channels, int64_t padding) {
  x = ops::conv(graph, fmt::format("conv{}", layer), x,
                {.out_channels = channels,
                 .kernel = ops::in_all(5),
                 .pad = ops::in_all(padding),
                 .bias = true,
                 .activation = ops::ActivationAttributes{}});
  return ops::pool(
      graph, fmt::format("pool{}", layer), x,
      {.kind = ops::PoolKind::max, .kernel = ops::in_all(2), .stride = ops::in_all(2)});
}

}  // namespace

Value mlp_logits(Graph& graph, Value images, const ModelSpec& spec) {
  return classify(graph, images, spec.hidden.empty() ? std::vector<int64_t>{256, 128} : spec.hidden,
                  spec);
}

Value lenet_logits(Graph& graph, Value images, const ModelSpec& spec) {
  return classify(graph, conv_and_pool(graph, 2, conv_and_pool(graph, 1, images, 6, 2), 16, 0),
                  {120, 84}, spec);
}

}  // namespace tutti::models
