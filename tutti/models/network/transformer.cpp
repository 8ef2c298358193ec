#include "tutti/models/network/transformer.h"

#include <cmath>

#include "tutti/models/block/sizes.h"
#include "tutti/ops/sequence/sequence.h"

namespace tutti::models {
namespace {

constexpr const char* kWritten = "tokens";  // the target tokens known so far

void require_even_heads(const TransformerSpec& spec) {
  require_whole_heads("transformer", spec);
  require(spec.width % 2 == 0,
          "transformer: a width of {} is odd; positions are pairs of sine and cosine", spec.width);
}

void require_pair_fields(const ModelSpec& spec) {
  const std::vector<ModelField>& read = spec.inputs;
  if (read.size() == 2 && read[0].name != kWritten && read[1].name == kWritten) return;
  std::string names;
  for (const ModelField& field : read) names += (names.empty() ? "" : ", ") + field.name;
  throw ConfigError(
      fmt::format("model '{}' reads a source and behind it the field {}, and is given {}: it goes "
                  "with data.dataset = \"token-pairs\", without data.input",
                  spec.name, kWritten, names));
}

/// Returns the initial values of a square projection; several of them may form one layer.
Init of_projection(int64_t width) {
  return {.kind = Init::Kind::normal,
          .value = std::sqrt(1 / static_cast<double>(width)),
          .stored = Init::Stored::matrix};
}

/// One layer of either stack.
class TransformerLayer {
 public:
  TransformerLayer(Graph& graph, std::string name, const TransformerSpec& spec)
      : graph_(graph), name_(std::move(name)), spec_(spec) {}

  /// `padding`: the tokens, below 0 at padding; invalid: attention is causal.
  Value attend(Value x, Value padding) {
    std::vector<Value> in{project("self_attn.in_proj", x, 3)};
    ops::AttentionAttributes a = heads();
    a.causal = !padding.valid();
    if (padding.valid()) {
      a.mask = ops::AttentionMask::keys;
      in.push_back(padding);
    }
    return joined("self_attn", x, attention(graph_, name_ + ".self_attn", in, a));
  }
  /// `memory`: the encoder's output, with its padding.
  Value attend_to(Value memory, Value padding, Value x) {
    const Value q = project("cross_attn.q_proj", x, 1),
                kv = project("cross_attn.kv_proj", memory, 2);
    ops::AttentionAttributes a = heads();
    a.mask = ops::AttentionMask::keys;
    a.inputs = ops::AttentionInputs::q_and_kv;
    return joined("cross_attn", x, attention(graph_, name_ + ".cross_attn", {q, kv, padding}, a));
  }
  Value transform(Value x) {
    const Value hidden = ops::relu(graph_, name_ + ".relu", layer("linear1", x, spec_.hidden));
    return normalised("linear2", x, layer("linear2", hidden, spec_.width));
  }

 private:
  ops::AttentionAttributes heads() const {
    return {.heads = spec_.heads,
            .key_heads = spec_.heads,
            .dropout = ops::in_training(spec_.attention_dropout, spec_.mode)};
  }
  Value project(const char* name, Value x, int64_t parts) {
    return ops::linear(
        graph_, fmt::format("{}.{}", name_, name), x,
        {.outputs = parts * spec_.width, .bias = false, .init = of_projection(spec_.width)});
  }
  Value layer(const char* name, Value x, int64_t outputs) {
    return ops::linear(
        graph_, fmt::format("{}.{}", name_, name), x,
        {.outputs = outputs,
         .init = {.kind = Init::Kind::glorot_normal, .stored = Init::Stored::matrix}});
  }
  Value joined(const std::string& attention, Value x, Value y) {
    return normalised(attention, x, project((attention + ".out_proj").c_str(), y, 1));
  }
  Value normalised(const std::string& of, Value x, Value y) {
    const std::string name = fmt::format("{}.{}", name_, of);
    y = ops::dropout(graph_, name + ".dropout", y, spec_.dropout, spec_.mode);
    return ops::layer_norm(graph_, fmt::format("{}.norm{}", name_, ++norms_),
                           ops::add(graph_, name + ".sum", x, y));
  }

  Graph& graph_;
  const std::string name_;
  const TransformerSpec& spec_;
  int norms_ = 0;
};

Value embedding_weight(Graph& graph, const std::string& name, int64_t vocabulary, int64_t width) {
  return graph.parameter(name + ".weight", {vocabulary, width, 1}, of_projection(width));
}

Value scaled_embedding(Graph& graph, const std::string& name, Value weight, Value tokens,
                       DType activations, const TransformerSpec& spec) {
  const float factor = std::sqrt(static_cast<float>(spec.width));
  Value x = ops::lookup(graph, name + ".lookup", weight, tokens, activations);
  x = ops::scale(graph, name + ".scale", x, factor);
  x = ops::add_sinusoids(graph, name + ".positions", x);
  return ops::dropout(graph, name + ".dropout", x, spec.dropout, spec.mode);
}

}  // namespace

Value transformer_logits(Graph& graph, Value source, Value tokens, DType activations,
                         const TransformerSpec& spec) {
  require_even_heads(spec);
  const bool shared = spec.source_vocabulary == 0;
  const Value own = embedding_weight(graph, shared ? "embedding" : "decoder.embedding",
                                     spec.vocabulary, spec.width);
  const Value of_source =
      shared ? own
             : embedding_weight(graph, "encoder.embedding", spec.source_vocabulary, spec.width);
  Value memory = scaled_embedding(graph, "encoder", of_source, source, activations, spec);
  for (int64_t i = 0; i < spec.depth; ++i) {
    TransformerLayer layer(graph, fmt::format("encoder.layers.{}", i), spec);
    memory = layer.transform(layer.attend(memory, source));
  }
  Value y = scaled_embedding(graph, "decoder", own, tokens, activations, spec);
  for (int64_t i = 0; i < spec.depth; ++i) {
    TransformerLayer layer(graph, fmt::format("decoder.layers.{}", i), spec);
    y = layer.attend(y, {});
    y = layer.transform(layer.attend_to(memory, source, y));
  }
  return ops::linear_by(graph, "lm_head", y, own);
}

void build_transformer(ModelBuilder& model, const TransformerSpec& own) {
  const ModelSpec& given = model.spec();
  require_pair_fields(given);
  TransformerSpec spec = with_sizes(own, given);
  spec.vocabulary = given.classes;
  const int64_t known = input_named(given, given.input_field).classes;
  const int64_t sources = known > 0 ? known : spec.vocabulary;
  if (given.embeddings == Embeddings::separate) spec.source_vocabulary = sources;
  require(spec.source_vocabulary != 0 || sources <= spec.vocabulary,
          "model '{}': sources have {} tokens and targets {}, so they cannot share embeddings: "
          "tokenize both alike, or set model.embeddings = \"separate\"",
          given.name, sources, spec.vocabulary);
  const Value source = model.tokens(given.input_field, sources);
  const Value tokens = model.tokens(kWritten);
  const ops::TokenLabels next = model.next_tokens();
  model.predict_tokens(transformer_logits(model.graph(), source, tokens, given.activations, spec),
                       next);
}

}  // namespace tutti::models
