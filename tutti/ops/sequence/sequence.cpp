#include "tutti/ops/sequence/sequence.h"

#include "tutti/ops/conv.h"
#include "tutti/ops/sequence/lookup.h"
#include "tutti/ops/sequence/swiglu.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

constexpr ConvAttributes kOneWide{.spatial = 1};

void require_sequence_of(const Graph& graph, const std::string& name, Value x) {
  require(graph.shape(x).rank() == 3,
          "layer '{}': x is {}, a sequence [N, channels, positions] is needed", name,
          graph.shape(x));
}

}  // namespace

Value linear(Graph& graph, const std::string& name, Value x, const LinearSpec& spec) {
  require_sequence_of(graph, name, x);
  require(spec.outputs >= 1, "layer '{}': {} outputs", name, spec.outputs);
  const int64_t channels = graph.shape(x)[1];
  std::vector<Value> in{x,
                        graph.parameter(name + ".weight", {spec.outputs, channels, 1}, spec.init)};
  if (spec.bias)
    in.push_back(graph.parameter(name + ".bias", {spec.outputs}, {spec.bias_init, channels}));
  return graph.append1(name, std::make_shared<Conv>(kOneWide, spec.bias), in);
}

Value linear_by(Graph& graph, const std::string& name, Value x, Value weight) {
  require_sequence_of(graph, name, x);
  return graph.append1(name, std::make_shared<Conv>(kOneWide, false), {x, weight});
}

Value lookup(Graph& graph, const std::string& name, Value weight, Value tokens, DType dtype) {
  return graph.append1(name, std::make_shared<Lookup>(dtype), {weight, tokens});
}

Value add_positions(Graph& graph, const std::string& name, Value x, int64_t positions, Init init) {
  require_sequence_of(graph, name, x);
  return add_positions_by(graph, name, x,
                          graph.parameter(name + ".weight", {positions, graph.shape(x)[1]}, init));
}

Value add_positions_by(Graph& graph, const std::string& name, Value x, Value positions) {
  return graph.append1(name, std::make_shared<AddPositions>(), {x, positions});
}

Value prepend_token(Graph& graph, const std::string& name, Value x, Value token) {
  return graph.append1(name, std::make_shared<PrependToken>(), {x, token});
}

Value add_sinusoids(Graph& graph, const std::string& name, Value x, double base) {
  return graph.append1(name, std::make_shared<AddSinusoids>(base), {x});
}

Value rotate(Graph& graph, const std::string& name, Value x, const RotationAttributes& attributes) {
  return graph.append1(name, std::make_shared<Rotate>(attributes), {x});
}

Value swiglu(Graph& graph, const std::string& name, Value gate, Value x) {
  return graph.append1(name, std::make_shared<SwiGlu>(), {gate, x});
}

Value layer_norm(Graph& graph, const std::string& name, Value x,
                 const LayerNormAttributes& attributes) {
  const Shape channels{graph.shape(x)[1]};
  std::vector<Value> in{x, graph.parameter(name + ".weight", channels, {Init::Kind::ones})};
  if (attributes.has_beta())
    in.push_back(graph.parameter(name + ".bias", channels, {Init::Kind::zeros}));
  return graph.append1(name, std::make_shared<LayerNorm>(attributes), in);
}

Value attention(Graph& graph, const std::string& name, const std::vector<Value>& in,
                AttentionAttributes attributes) {
  if (attributes.dropout > 0) attributes.salt = salt_of(name);
  return graph.append1(name, std::make_shared<Attention>(attributes), in);
}

TokenLabels count_tokens(Graph& graph, const std::string& name, Value labels, int64_t vocabulary) {
  return {labels, graph.append1(name, std::make_shared<CountTokens>(vocabulary), {labels})};
}

TokenLosses token_loss(Graph& graph, const std::string& name, Value logits,
                       const TokenLabels& labels, const TokenLossAttributes& attributes) {
  const std::vector<Value> out = graph.append(name, std::make_shared<TokenLoss>(attributes),
                                              {logits, labels.labels, labels.count});
  return {out[0], out[1]};
}

Value token_hits(Graph& graph, const std::string& name, Value logits, Value labels) {
  return graph.append1(name, std::make_shared<TokenHits>(), {logits, labels});
}

}  // namespace tutti::ops
