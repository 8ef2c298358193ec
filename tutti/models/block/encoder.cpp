#include "tutti/models/block/encoder.h"

namespace tutti::models {
namespace {

class EncoderLayer {
 public:
  EncoderLayer(graph::Graph& graph, std::string name, const EncoderSpec& spec)
      : graph_(graph), name_(std::move(name)), spec_(spec) {}

  graph::Value attend(graph::Value x, graph::Value padding) {
    std::vector<graph::Value> in{layer("attn.qkv", norm("norm1", x), 3 * spec_.width)};
    ops::AttentionAttributes a{.heads = spec_.heads,
                               .key_heads = spec_.heads,
                               .dropout = ops::in_training(spec_.attention_dropout, spec_.mode)};
    if (padding.valid()) {
      a.mask = ops::AttentionMask::keys;
      in.push_back(padding);
    }
    return sum("attn", x,
               layer("attn.proj", ops::attention(graph_, name_ + ".attn", in, a), spec_.width));
  }
  graph::Value transform(graph::Value x) {
    const int64_t hidden = spec_.hidden > 0 ? spec_.hidden : 4 * spec_.width;
    const graph::Value y =
        ops::activation(graph_, name_ + ".mlp.gelu", layer("mlp.fc1", norm("norm2", x), hidden),
                        ops::ActivationKind::gelu);
    return sum("mlp", x, layer("mlp.fc2", y, spec_.width));
  }

 private:
  graph::Value norm(const char* name, graph::Value x) {
    return ops::layer_norm(graph_, fmt::format("{}.{}", name_, name), x, kEncoderNorm);
  }
  graph::Value layer(const char* name, graph::Value x, int64_t outputs) {
    return encoder_linear(graph_, fmt::format("{}.{}", name_, name), x, outputs);
  }
  graph::Value sum(const char* name, graph::Value x, graph::Value y) {
    y = ops::dropout(graph_, fmt::format("{}.{}.dropout", name_, name), y, spec_.dropout,
                     spec_.mode);
    return ops::add(graph_, fmt::format("{}.{}.sum", name_, name), x, y);
  }

  graph::Graph& graph_;
  const std::string name_;
  const EncoderSpec& spec_;
};

}  // namespace

EncoderSpec with_sizes(EncoderSpec own, const ModelSpec& given) {
  own.mode = given.mode;
  if (given.depth > 0) own.depth = given.depth;
  if (given.width > 0) own.width = given.width;
  if (given.heads > 0) own.heads = given.heads;
  if (!given.hidden.empty()) own.hidden = given.hidden.front();
  if (given.dropout) own.dropout = *given.dropout;
  if (given.attention_dropout) own.attention_dropout = *given.attention_dropout;
  return own;
}

graph::Init encoder_init(graph::Init::Stored stored) {
  return {
      .kind = graph::Init::Kind::truncated_normal, .value = kEncoderDeviation, .stored = stored};
}

graph::Value encoder_linear(graph::Graph& graph, const std::string& name, graph::Value x,
                            int64_t outputs) {
  return ops::linear(graph, name, x,
                     {.outputs = outputs, .init = encoder_init(graph::Init::Stored::matrix)});
}

void require_encoder_heads(std::string_view model, const EncoderSpec& spec) {
  if (spec.heads < 1 || spec.width % spec.heads != 0)
    throw ConfigError(fmt::format("{}: a width of {} is not a multiple of {} heads", model,
                                  spec.width, spec.heads));
}

graph::Value encoder_layers(graph::Graph& graph, graph::Value x, graph::Value padding,
                            const EncoderSpec& spec) {
  for (int64_t i = 0; i < spec.depth; ++i) {
    EncoderLayer layer(graph, fmt::format("blocks.{}", i), spec);
    x = layer.transform(layer.attend(x, padding));
  }
  return x;
}

}  // namespace tutti::models
