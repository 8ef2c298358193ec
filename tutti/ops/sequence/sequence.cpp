#include "tutti/ops/sequence/sequence.h"

#include "tutti/ops/conv.h"
#include "tutti/ops/sequence/lookup.h"
#include "tutti/ops/sequence/swiglu.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

constexpr ConvAttributes kOneWide{.spatial = 1};

void require_sequence_of(const graph::Graph& graph, const std::string& name, graph::Value x) {
  require(graph.shape(x).rank() == 3,
          "layer '{}': x is {}, a sequence [N, channels, positions] is needed", name,
          graph.shape(x).to_string());
}

}  // namespace

graph::Value linear(graph::Graph& graph, const std::string& name, graph::Value x,
                    const LinearSpec& spec) {
  require_sequence_of(graph, name, x);
  require(spec.outputs >= 1, "layer '{}': {} outputs", name, spec.outputs);
  const int64_t channels = graph.shape(x)[1];
  std::vector<graph::Value> in{
      x, graph.parameter(name + ".weight", {spec.outputs, channels, 1}, spec.init)};
  if (spec.bias)
    in.push_back(graph.parameter(name + ".bias", {spec.outputs}, {spec.bias_init, channels}));
  return graph.append(name, std::make_shared<Conv>(kOneWide, spec.bias), in).front();
}

graph::Value linear_by(graph::Graph& graph, const std::string& name, graph::Value x,
                       graph::Value weight) {
  require_sequence_of(graph, name, x);
  return graph.append1(name, std::make_shared<Conv>(kOneWide, false), {x, weight});
}

graph::Value lookup(graph::Graph& graph, const std::string& name, graph::Value weight,
                    graph::Value tokens, DType dtype) {
  return graph.append1(name, std::make_shared<Lookup>(dtype), {weight, tokens});
}

graph::Value add_positions(graph::Graph& graph, const std::string& name, graph::Value x,
                           int64_t positions, graph::Init init) {
  require_sequence_of(graph, name, x);
  return add_positions_by(graph, name, x,
                          graph.parameter(name + ".weight", {positions, graph.shape(x)[1]}, init));
}

graph::Value add_positions_by(graph::Graph& graph, const std::string& name, graph::Value x,
                              graph::Value positions) {
  return graph.append1(name, std::make_shared<AddPositions>(), {x, positions});
}

graph::Value prepend_token(graph::Graph& graph, const std::string& name, graph::Value x,
                           graph::Value token) {
  return graph.append1(name, std::make_shared<PrependToken>(), {x, token});
}

graph::Value add_sinusoids(graph::Graph& graph, const std::string& name, graph::Value x,
                           double base) {
  return graph.append1(name, std::make_shared<AddSinusoids>(base), {x});
}

graph::Value rotate(graph::Graph& graph, const std::string& name, graph::Value x,
                    const RotationAttributes& attributes) {
  return graph.append1(name, std::make_shared<Rotate>(attributes), {x});
}

graph::Value swiglu(graph::Graph& graph, const std::string& name, graph::Value gate,
                    graph::Value x) {
  return graph.append1(name, std::make_shared<SwiGlu>(), {gate, x});
}

graph::Value layer_norm(graph::Graph& graph, const std::string& name, graph::Value x,
                        const LayerNormAttributes& attributes) {
  const Shape channels{graph.shape(x)[1]};
  std::vector<graph::Value> in{
      x, graph.parameter(name + ".weight", channels, {graph::Init::Kind::ones})};
  if (attributes.has_beta())
    in.push_back(graph.parameter(name + ".bias", channels, {graph::Init::Kind::zeros}));
  return graph.append(name, std::make_shared<LayerNorm>(attributes), in).front();
}

graph::Value attention(graph::Graph& graph, const std::string& name,
                       const std::vector<graph::Value>& in, AttentionAttributes attributes) {
  if (attributes.dropout > 0) attributes.salt = salt_of(name);
  return graph.append(name, std::make_shared<Attention>(attributes), in).front();
}

TokenLabels count_tokens(graph::Graph& graph, const std::string& name, graph::Value labels,
                         int64_t vocabulary) {
  return {labels, graph.append1(name, std::make_shared<CountTokens>(vocabulary), {labels})};
}

TokenLosses token_loss(graph::Graph& graph, const std::string& name, graph::Value logits,
                       const TokenLabels& labels, const TokenLossAttributes& attributes) {
  const std::vector<graph::Value> out =
      graph.append(name, std::make_shared<TokenLoss>(attributes),
                   std::vector<graph::Value>{logits, labels.labels, labels.count});
  return {out[0], out[1]};
}

graph::Value token_hits(graph::Graph& graph, const std::string& name, graph::Value logits,
                        graph::Value labels) {
  return graph.append1(name, std::make_shared<TokenHits>(), {logits, labels});
}

}  // namespace tutti::ops
