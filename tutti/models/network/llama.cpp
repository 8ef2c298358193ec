#include "tutti/models/network/llama.h"

#include "tutti/models/block/language_inputs.h"

namespace tutti::models {
namespace {

constexpr double kLlamaDeviation = 0.02;
constexpr ops::LayerNormAttributes kRmsNorm{.kind = ops::LayerNormKind::rms, .epsilon = 1e-5f};
constexpr Init kLlamaInit{
    .kind = Init::Kind::normal, .value = kLlamaDeviation, .stored = Init::Stored::matrix};

/// Adds the sizes that follow from other sizes.
LlamaSpec sized(LlamaSpec spec) {
  constexpr int64_t kMultiple = 256;
  if (spec.key_heads == 0) spec.key_heads = spec.heads;
  if (spec.hidden == 0) spec.hidden = (8 * spec.width / 3 + kMultiple - 1) / kMultiple * kMultiple;
  require(spec.width % spec.heads == 0 && spec.width / spec.heads % 2 == 0,
          "llama: a width of {} is not {} heads of an even number of channels, which "
          "turn in pairs",
          spec.width, spec.heads);
  require(spec.heads % spec.key_heads == 0, "llama: {} heads do not share {} heads of keys evenly",
          spec.heads, spec.key_heads);
  return spec;
}

/// One layer of the decoder.
class LlamaBlock {
 public:
  LlamaBlock(Graph& graph, std::string name, const LlamaSpec& spec)
      : graph_(graph), name_(std::move(name)), spec_(spec) {}

  /// `segments`: invalid for none.
  Value attend(Value x, Value segments) {
    const int64_t width = spec_.width / spec_.heads, keys = spec_.key_heads * width;
    const Value n = norm("input_layernorm", x);
    const Value y =
        causal_attention(graph_, name_ + ".self_attn",
                         {rotated("self_attn.q_proj", n, spec_.width),
                          rotated("self_attn.k_proj", n, keys), layer("self_attn.v_proj", n, keys)},
                         {.heads = spec_.heads,
                          .key_heads = spec_.key_heads,
                          .inputs = ops::AttentionInputs::separate},
                         segments);
    return ops::add(graph_, name_ + ".self_attn.sum", x, layer("self_attn.o_proj", y, spec_.width));
  }
  Value transform(Value x) {
    const Value n = norm("post_attention_layernorm", x);
    const Value gate = layer("mlp.gate_proj", n, spec_.hidden),
                up = layer("mlp.up_proj", n, spec_.hidden);
    return ops::add(
        graph_, name_ + ".mlp.sum", x,
        layer("mlp.down_proj", ops::swiglu(graph_, name_ + ".mlp.gated", gate, up), spec_.width));
  }

 private:
  std::string named(const char* name) const { return fmt::format("{}.{}", name_, name); }
  Value norm(const char* name, Value x) {
    return ops::layer_norm(graph_, named(name), x, kRmsNorm);
  }
  Value layer(const char* name, Value x, int64_t outputs) {
    return ops::linear(graph_, named(name), x,
                       {.outputs = outputs, .bias = false, .init = kLlamaInit});
  }
  Value rotated(const char* name, Value x, int64_t outputs) {
    const int64_t width = spec_.width / spec_.heads;
    return ops::rotate(graph_, named(name) + ".rotated", layer(name, x, outputs),
                       {.heads = outputs / width, .width = width, .base = spec_.base});
  }

  Graph& graph_;
  const std::string name_;
  const LlamaSpec& spec_;
};

}  // namespace

Value llama_logits(Graph& graph, Value tokens, Value segments, DType activations,
                   const LlamaSpec& given) {
  const LlamaSpec spec = sized(given);
  const Value embed =
      graph.parameter("model.embed_tokens.weight", {spec.vocabulary, spec.width, 1}, kLlamaInit);
  Value x = ops::lookup(graph, "model.embed_tokens", embed, tokens, activations);
  for (int64_t i = 0; i < spec.depth; ++i) {
    LlamaBlock block(graph, fmt::format("model.layers.{}", i), spec);
    x = block.transform(block.attend(x, segments));
  }
  x = ops::layer_norm(graph, "model.norm", x, kRmsNorm);
  return spec.tied ? ops::linear_by(graph, "lm_head", x, embed)
                   : ops::linear(graph, "lm_head", x,
                                 {.outputs = spec.vocabulary, .bias = false, .init = kLlamaInit});
}

void build_llama(ModelBuilder& model, const LlamaSpec& own) {
  const ModelSpec& given = model.spec();
  LlamaSpec spec = own;
  spec.vocabulary = given.classes;
  spec.tied = given.tied;
  if (given.depth > 0) spec.depth = given.depth;
  if (given.width > 0) {
    spec.width = given.width;
    spec.hidden = 0;  // own.hidden fits own.width only
  }
  if (given.heads > 0) {
    spec.heads = given.heads;
    spec.key_heads = 0;
  }
  if (given.key_heads > 0) spec.key_heads = given.key_heads;
  if (!given.hidden.empty()) spec.hidden = given.hidden.front();
  if (given.rotary_base > 0) spec.base = given.rotary_base;
  const LanguageInputs in = language_inputs(model);
  model.predict_tokens(llama_logits(model.graph(), in.tokens, in.segments, given.activations, spec),
                       in.next);
}

}  // namespace tutti::models
