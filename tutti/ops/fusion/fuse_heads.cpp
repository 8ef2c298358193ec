#include <vector>

#include "tutti/graph/autodiff.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/fusion/rewriter.h"
#include "tutti/ops/sequence/token_head.h"

namespace tutti::ops {
namespace {

/// With fewer tokens, the logits of a tile stay in its core's cache.
constexpr int64_t kLargeVocabulary = 4096;

/// True for a product of each position with a parameter, and nothing else.
bool is_plain_layer(const Graph& graph, const Node& node) {
  const auto* conv = dynamic_cast<const Conv*>(node.op.get());
  if (!conv || conv->bias() || conv->activation() || conv->conv().spatial != 1) return false;
  const Shape &x = graph.shape(node.in[0]), &y = graph.shape(node.out[0]);
  return conv->conv().groups == 1 && graph[node.in[1]].role == Role::parameter &&
         graph.shape(node.in[1])[2] == 1 && x[2] == y[2];
}

class HeadFuser {
 public:
  HeadFuser(const Graph& graph, std::span<const Value> trained)
      : graph_(graph), trained_(trained), depends_(graph::depends_on(graph, trained)),
        rewriter_(graph) {}

  Rewritten fuse() {
    for (const Node& node : graph_.nodes())
      if (const auto* loss = dynamic_cast<const TokenLoss*>(node.op.get())) join(node, *loss);
    return rewriter_.build();
  }

 private:
  void join(const Node& node, const TokenLoss& loss) {
    const Value logits = node.in[0];
    if (graph_.shape(logits)[1] < kLargeVocabulary || graph_[logits].producer < 0) return;
    const Node& layer = graph_.nodes()[static_cast<size_t>(graph_[logits].producer)];
    const Node* const hits = hits_behind(node);
    if (!is_plain_layer(graph_, layer) || rewriter_.readers(logits) != (hits ? 2 : 1)) return;
    const Value w = layer.in[1];
    const TokenHeadAttributes a{.loss = loss.loss(),
                                .hits = hits != nullptr,
                                .data = depends_[static_cast<size_t>(layer.in[0].id)],
                                .weights = std::ranges::find(trained_, w) != trained_.end()};
    rewriter_.replace(node, {.name = layer.name,
                             .op = std::make_shared<TokenHead>(a),
                             .in = {layer.in[0], w, node.in[1], node.in[2]},
                             .also = hits ? hits->out : std::vector<Value>{}});
    rewriter_.drop(layer);
    if (hits) rewriter_.drop(*hits);
  }

  /// Returns the TokenHits that reads the same logits and labels; null: none.
  const Node* hits_behind(const Node& loss) const {
    for (const Node& node : graph_.nodes())
      if (&node > &loss && dynamic_cast<const TokenHits*>(node.op.get()) &&
          node.in[0] == loss.in[0] && node.in[1] == loss.in[1])
        return &node;
    return nullptr;
  }

  const Graph& graph_;
  std::span<const Value> trained_;
  std::vector<bool> depends_;  ///< by value id
  Rewriter rewriter_;
};

}  // namespace

Rewritten fuse_heads(const Graph& graph, std::span<const Value> trained) {
  return HeadFuser(graph, trained).fuse();
}

}  // namespace tutti::ops
