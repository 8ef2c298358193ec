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
  Init init{Init::Kind::uniform_fan_in};  ///< initial values of the weight
  Init::Kind bias_init = Init::Kind::zeros;
};

/// y[n, :, t] = w x[n, :, t] + bias: parameters NAME.weight [outputs, C, 1] and NAME.bias.
Value linear(Graph& graph, const std::string& name, Value x, const LinearSpec& spec);
/// Like linear, but with a weight [K, C, 1] that other ops read, too, and without a bias.
Value linear_by(Graph& graph, const std::string& name, Value x, Value weight);
/// Looks tokens i32 [N, T] up in a weight [V, C, 1]; the result has type `dtype`.
Value lookup(Graph& graph, const std::string& name, Value weight, Value tokens, DType dtype);
/// Adds the parameter NAME.weight [positions, C].
Value add_positions(Graph& graph, const std::string& name, Value x, int64_t positions, Init init);
/// Adds positions [M, C] or [1, M, C] that have a name of their own.
Value add_positions_by(Graph& graph, const std::string& name, Value x, Value positions);
/// Puts a learned vector [1, C] or [1, 1, C] before each sequence.
Value prepend_token(Graph& graph, const std::string& name, Value x, Value token);
/// Adds the sines and cosines of Vaswani et al. (ops/sequence/waves.h).
Value add_sinusoids(Graph& graph, const std::string& name, Value x, double base = 10000);
/// Rotates the first heads of x by their positions (ops/sequence/waves.h).
Value rotate(Graph& graph, const std::string& name, Value x, const RotationAttributes& attributes);
/// Returns silu(gate) times x.
Value swiglu(Graph& graph, const std::string& name, Value gate, Value x);
/// Adds the parameters NAME.weight and, for a layer norm, NAME.bias.
Value layer_norm(Graph& graph, const std::string& name, Value x,
                 const LayerNormAttributes& attributes = {});
Value attention(Graph& graph, const std::string& name, const std::vector<Value>& in,
                AttentionAttributes attributes);

/// Labels i32 [N, T] and how many of them are tokens.
struct TokenLabels {
  Value labels, count;
};
/// Is called before the network: a plan then knows the count early and need not keep logits.
TokenLabels count_tokens(Graph& graph, const std::string& name, Value labels, int64_t vocabulary);

struct TokenLosses {
  Value loss;      ///< f32 scalar
  Value surprise;  ///< -log p of each label, f32 [N, 1, T]
};
/// Returns f32 [N, 1, T]: 1 where the label is the likeliest token.
Value token_hits(Graph& graph, const std::string& name, Value logits, Value labels);
TokenLosses token_loss(Graph& graph, const std::string& name, Value logits,
                       const TokenLabels& labels, const TokenLossAttributes& attributes = {});

}  // namespace tutti::ops
