#pragma once
// Functions for models of sequences, beside builder.h. A sequence is an activation [N, C, T]; an op
// on each position by itself is a convolution of width 1, so it shares bands, tiles and slabs with
// all other convolutions. All throw ConfigError naming the layer if shapes do not fit.

#include <string>
#include <vector>

#include "tutti/ops/builder.h"
#include "tutti/ops/sequence/attention.h"
#include "tutti/ops/sequence/layer_norm.h"
#include "tutti/ops/sequence/token_loss.h"
#include "tutti/ops/sequence/waves.h"

namespace tutti::ops {

struct LinearSpec {
  int64_t outputs = 0;
  bool bias = true;
  graph::Init init{graph::Init::Kind::uniform_fan_in};  ///< initial values of the weight
  graph::Init::Kind bias_init = graph::Init::Kind::zeros;
};

/// y[n, :, t] = w x[n, :, t] + bias: parameters NAME.weight [outputs, C, 1] and NAME.bias.
graph::Value linear(graph::Graph& graph, const std::string& name, graph::Value x,
                    const LinearSpec& spec);
/// Like linear, but with a weight [K, C, 1] that other ops read, too, and without a bias.
graph::Value linear_by(graph::Graph& graph, const std::string& name, graph::Value x,
                       graph::Value weight);
/// Looks tokens i32 [N, T] up in a weight [V, C, 1]; the result has type `dtype`.
graph::Value lookup(graph::Graph& graph, const std::string& name, graph::Value weight,
                    graph::Value tokens, DType dtype);
/// Adds the parameter NAME.weight [positions, C].
graph::Value add_positions(graph::Graph& graph, const std::string& name, graph::Value x,
                           int64_t positions, graph::Init init);
/// Adds positions [M, C] or [1, M, C] that have a name of their own.
graph::Value add_positions_by(graph::Graph& graph, const std::string& name, graph::Value x,
                              graph::Value positions);
/// Puts a learned vector [1, C] or [1, 1, C] before each sequence.
graph::Value prepend_token(graph::Graph& graph, const std::string& name, graph::Value x,
                           graph::Value token);
/// Adds the sines and cosines of Vaswani et al. (ops/sequence/waves.h).
graph::Value add_sinusoids(graph::Graph& graph, const std::string& name, graph::Value x,
                           double base = 10000);
/// Rotates the first heads of x by their positions (ops/sequence/waves.h).
graph::Value rotate(graph::Graph& graph, const std::string& name, graph::Value x,
                    const RotationAttributes& attributes);
/// Returns silu(gate) times x.
graph::Value swiglu(graph::Graph& graph, const std::string& name, graph::Value gate,
                    graph::Value x);
/// Adds the parameters NAME.weight and, for a layer norm, NAME.bias.
graph::Value layer_norm(graph::Graph& graph, const std::string& name, graph::Value x,
                        const LayerNormAttributes& attributes = {});
graph::Value attention(graph::Graph& graph, const std::string& name,
                       const std::vector<graph::Value>& in, AttentionAttributes attributes);

/// Labels i32 [N, T] and how many of them are tokens.
struct TokenLabels {
  graph::Value labels, count;
};
/// Is called before the network: a plan then knows the count early and need not keep logits.
TokenLabels count_tokens(graph::Graph& graph, const std::string& name, graph::Value labels,
                         int64_t vocabulary);

struct TokenLosses {
  graph::Value loss;      ///< f32 scalar
  graph::Value surprise;  ///< -log p of each label, f32 [N, 1, T]
};
/// Returns f32 [N, 1, T]: 1 where the label is the likeliest token.
graph::Value token_hits(graph::Graph& graph, const std::string& name, graph::Value logits,
                        graph::Value labels);
TokenLosses token_loss(graph::Graph& graph, const std::string& name, graph::Value logits,
                       const TokenLabels& labels, const TokenLossAttributes& attributes = {});

}  // namespace tutti::ops
