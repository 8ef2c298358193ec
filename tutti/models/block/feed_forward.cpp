#include "tutti/models/block/feed_forward.h"

namespace tutti {
namespace {

/// Adds dense layers of the given sizes with ReLU, then the classifier.
Value classify(Graph& graph, Value x, const std::vector<int64_t>& hidden, const ModelSpec& spec) {
  int layer = 1;
  for (const int64_t size : hidden) {
    const std::string name = fmt::format("fc{}", layer++);
    x = relu(graph, name + ".relu",
             dense(graph, name, x, {.outputs = size, .dtype = spec.activations}));
  }
  return dense(graph, fmt::format("fc{}", layer), x, {.outputs = spec.classes});
}

Value conv_and_pool(Graph& graph, int layer, Value x, int64_t channels, int64_t padding) {
  x = conv(graph, fmt::format("conv{}", layer), x,
           {.out_channels = channels,
            .kernel = in_all(5),
            .pad = in_all(padding),
            .bias = true,
            .activation = ActivationAttributes{}});
  return pool(graph, fmt::format("pool{}", layer), x,
              {.kind = PoolKind::max, .kernel = in_all(2), .stride = in_all(2)});
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

}  // namespace tutti
