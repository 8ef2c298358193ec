#include "tutti/models/block/encoder.h"

namespace tutti::models {
namespace {

class EncoderLayer {
 public:
  EncoderLayer(Graph& graph, std::string name, const EncoderSpec& spec)
      : graph_(graph), name_(std::move(name)), spec_(spec) {}

  Value attend(Value x, Value padding) {
    std::vector<Value> in{layer("attn.qkv", norm("norm1", x), 3 * spec_.width)};
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
  Value transform(Value x) {
    const int64_t hidden = spec_.hidden > 0 ? spec_.hidden : 4 * spec_.width;
    const Value y =
        ops::activation(graph_, name_ + ".mlp.gelu", layer("mlp.fc1", norm("norm2", x), hidden),
                        ops::ActivationKind::gelu);
    return sum("mlp", x, layer("mlp.fc2", y, spec_.width));
  }

 private:
  Value norm(const char* name, Value x) {
    return ops::layer_norm(graph_, fmt::format("{}.{}", name_, name), x, kEncoderNorm);
  }
  Value layer(const char* name, Value x, int64_t outputs) {
    return encoder_linear(graph_, fmt::format("{}.{}", name_, name), x, outputs);
  }
  Value sum(const char* name, Value x, Value y) {
    y = ops::dropout(graph_, fmt::format("{}.{}.dropout", name_, name), y, spec_.dropout,
                     spec_.mode);
    return ops::add(graph_, fmt::format("{}.{}.sum", name_, name), x, y);
  }

  Graph& graph_;
  const std::string name_;
  const EncoderSpec& spec_;
};

}  // namespace

Init encoder_init(Init::Stored stored) {
  return {.kind = Init::Kind::truncated_normal, .value = kEncoderDeviation, .stored = stored};
}

Value encoder_linear(Graph& graph, const std::string& name, Value x, int64_t outputs) {
  return ops::linear(graph, name, x,
                     {.outputs = outputs, .init = encoder_init(Init::Stored::matrix)});
}

Value encoder_layers(Graph& graph, Value x, Value padding, const EncoderSpec& spec) {
  for (int64_t i = 0; i < spec.depth; ++i) {
    EncoderLayer layer(graph, fmt::format("blocks.{}", i), spec);
    x = layer.transform(layer.attend(x, padding));
  }
  return x;
}

}  // namespace tutti::models
