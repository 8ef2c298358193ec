#include "tutti/models/block/encoder.h"

namespace tutti {
namespace {

class EncoderLayer {
 public:
  EncoderLayer(Graph& graph, std::string name, const EncoderSpec& spec)
      : graph_(graph), name_(std::move(name)), spec_(spec) {}

  Value attend(Value x, Value padding) {
    std::vector<Value> in{layer("attn.qkv", norm("norm1", x), 3 * spec_.width)};
    AttentionAttributes a{.heads = spec_.heads,
                          .key_heads = spec_.heads,
                          .dropout = in_training(spec_.attention_dropout, spec_.mode)};
    if (padding.valid()) {
      a.mask = AttentionMask::keys;
      in.push_back(padding);
    }
    return sum("attn", x,
               layer("attn.proj", attention(graph_, name_ + ".attn", in, a), spec_.width));
  }
  Value transform(Value x) {
    const int64_t hidden = spec_.hidden > 0 ? spec_.hidden : 4 * spec_.width;
    const Value y = activation(graph_, name_ + ".mlp.gelu",
                               layer("mlp.fc1", norm("norm2", x), hidden), ActivationKind::gelu);
    return sum("mlp", x, layer("mlp.fc2", y, spec_.width));
  }

 private:
  Value norm(const char* name, Value x) {
    return layer_norm(graph_, fmt::format("{}.{}", name_, name), x, kEncoderNorm);
  }
  Value layer(const char* name, Value x, int64_t outputs) {
    return encoder_linear(graph_, fmt::format("{}.{}", name_, name), x, outputs);
  }
  Value sum(const char* name, Value x, Value y) {
    y = dropout(graph_, fmt::format("{}.{}.dropout", name_, name), y, spec_.dropout, spec_.mode);
    return add(graph_, fmt::format("{}.{}.sum", name_, name), x, y);
  }

  Graph& graph_;
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

Init encoder_init(Init::Stored stored) {
  return {.kind = Init::Kind::truncated_normal, .value = kEncoderDeviation, .stored = stored};
}

Value encoder_linear(Graph& graph, const std::string& name, Value x, int64_t outputs) {
  return linear(graph, name, x, {.outputs = outputs, .init = encoder_init(Init::Stored::matrix)});
}

void require_encoder_heads(std::string_view model, const EncoderSpec& spec) {
  if (spec.heads < 1 || spec.width % spec.heads != 0)
    throw ConfigError(fmt::format("{}: a width of {} is not a multiple of {} heads", model,
                                  spec.width, spec.heads));
}

Value encoder_layers(Graph& graph, Value x, Value padding, const EncoderSpec& spec) {
  for (int64_t i = 0; i < spec.depth; ++i) {
    EncoderLayer layer(graph, fmt::format("blocks.{}", i), spec);
    x = layer.transform(layer.attend(x, padding));
  }
  return x;
}

}  // namespace tutti
