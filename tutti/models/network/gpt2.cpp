#include "tutti/models/network/gpt2.h"

#include <cmath>

#include "tutti/models/block/language_inputs.h"
#include "tutti/models/block/sizes.h"

namespace tutti::models {
namespace {

constexpr double kDeviation = 0.02;

Init normal(double deviation, Init::Stored stored = Init::Stored::as_it_is) {
  return {.kind = Init::Kind::normal, .value = deviation, .stored = stored};
}

void require_sizes(const Gpt2Spec& spec, int64_t positions) {
  require_whole_heads("gpt2", spec);
  require(positions <= spec.context,
          "gpt2: samples have {} positions, and the model learns {} (model.context)", positions,
          spec.context);
}

/// One layer of the decoder.
class Gpt2Block {
 public:
  Gpt2Block(Graph& graph, std::string name, const Gpt2Spec& spec)
      : graph_(graph), name_(std::move(name)), spec_(spec),
        to_sum_(kDeviation / std::sqrt(2 * static_cast<double>(spec.depth))) {}

  /// `segments`: invalid for none.
  Value attend(Value x, Value segments) {
    const Value qkv = layer("attn.c_attn", norm("ln_1", x), 3 * spec_.width, kDeviation);
    const Value y =
        causal_attention(graph_, name_ + ".attn", {qkv},
                         {.heads = spec_.heads,
                          .key_heads = spec_.heads,
                          .dropout = ops::in_training(spec_.attention_dropout, spec_.mode)},
                         segments);
    return sum("attn", x, layer("attn.c_proj", y, spec_.width, to_sum_));
  }
  Value transform(Value x) {
    const int64_t hidden = spec_.hidden > 0 ? spec_.hidden : 4 * spec_.width;
    const Value y = ops::activation(graph_, name_ + ".mlp.gelu",
                                    layer("mlp.c_fc", norm("ln_2", x), hidden, kDeviation),
                                    ops::ActivationKind::gelu_tanh);
    return sum("mlp", x, layer("mlp.c_proj", y, spec_.width, to_sum_));
  }

 private:
  Value norm(const char* name, Value x) {
    return ops::layer_norm(graph_, fmt::format("{}.{}", name_, name), x);
  }
  Value layer(const char* name, Value x, int64_t outputs, double deviation) {
    return ops::linear(graph_, fmt::format("{}.{}", name_, name), x,
                       {.outputs = outputs, .init = normal(deviation, Init::Stored::transposed)});
  }
  Value sum(const char* name, Value x, Value y) {
    y = ops::dropout(graph_, fmt::format("{}.{}.dropout", name_, name), y, spec_.dropout,
                     spec_.mode);
    return ops::add(graph_, fmt::format("{}.{}.sum", name_, name), x, y);
  }

  Graph& graph_;
  const std::string name_;
  const Gpt2Spec& spec_;
  const double to_sum_;
};

}  // namespace

Value gpt2_logits(Graph& graph, Value tokens, Value segments, DType activations,
                  const Gpt2Spec& spec) {
  require_sizes(spec, graph.shape(tokens)[1]);
  const Value wte = graph.parameter("wte.weight", {spec.vocabulary, spec.width, 1},
                                    normal(kDeviation, Init::Stored::matrix));
  Value x = ops::lookup(graph, "wte", wte, tokens, activations);
  x = ops::add_positions(graph, "wpe", x, spec.context, normal(kDeviation));
  x = ops::dropout(graph, "drop", x, spec.dropout, spec.mode);
  for (int64_t i = 0; i < spec.depth; ++i) {
    Gpt2Block block(graph, fmt::format("h.{}", i), spec);
    x = block.transform(block.attend(x, segments));
  }
  return ops::linear_by(graph, "lm_head", ops::layer_norm(graph, "ln_f", x), wte);
}

void build_gpt2(ModelBuilder& model, const Gpt2Spec& own) {
  const ModelSpec& given = model.spec();
  Gpt2Spec spec = with_sizes(own, given);
  spec.vocabulary = given.classes;
  spec.context = given.context > 0 ? given.context : given.input[0];
  const LanguageInputs in = language_inputs(model);
  model.predict_tokens(gpt2_logits(model.graph(), in.tokens, in.segments, given.activations, spec),
                       in.next);
}

}  // namespace tutti::models
