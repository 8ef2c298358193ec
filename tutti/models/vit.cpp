#include "tutti/models/vit.h"

namespace tutti {
namespace {

constexpr double kVitDeviation = 0.02;
constexpr LayerNormAttributes kVitNorm{.epsilon = 1e-6f};

Init cut_normal(double deviation, Init::Stored stored = Init::Stored::as_it_is) {
  return {.kind = Init::Kind::truncated_normal, .value = deviation, .stored = stored};
}

void require_patches(const VitSpec& spec, const Shape& x) {
  if (x.rank() != 4 || x[2] % spec.patch != 0 || x[3] % spec.patch != 0)
    throw ConfigError(fmt::format(
        "vit: patches of {0} x {0} do not fill samples of {1}: choose model.kernel, the side of a "
        "patch, so that it divides both sides of the image",
        spec.patch, Shape(std::span(x.begin() + 1, x.end())).to_string()));
  if (spec.heads < 1 || spec.width % spec.heads != 0)
    throw ConfigError(
        fmt::format("vit: a width of {} is not a multiple of {} heads", spec.width, spec.heads));
}

/// One layer of the encoder.
class VitBlock {
 public:
  VitBlock(Graph& graph, std::string name, const VitSpec& spec)
      : graph_(graph), name_(std::move(name)), spec_(spec) {}

  Value attend(Value x) {
    const Value qkv = layer("attn.qkv", norm("norm1", x), 3 * spec_.width);
    const Value y = attention(graph_, name_ + ".attn", {qkv},
                              {.heads = spec_.heads,
                               .key_heads = spec_.heads,
                               .dropout = in_training(spec_.attention_dropout, spec_.mode)});
    return sum("attn", x, layer("attn.proj", y, spec_.width));
  }
  Value transform(Value x) {
    const int64_t hidden = spec_.hidden > 0 ? spec_.hidden : 4 * spec_.width;
    const Value y = activation(graph_, name_ + ".mlp.gelu",
                               layer("mlp.fc1", norm("norm2", x), hidden), ActivationKind::gelu);
    return sum("mlp", x, layer("mlp.fc2", y, spec_.width));
  }

 private:
  Value norm(const char* name, Value x) {
    return layer_norm(graph_, fmt::format("{}.{}", name_, name), x, kVitNorm);
  }
  Value layer(const char* name, Value x, int64_t outputs) {
    return linear(graph_, fmt::format("{}.{}", name_, name), x,
                  {.outputs = outputs, .init = cut_normal(kVitDeviation, Init::Stored::matrix)});
  }
  Value sum(const char* name, Value x, Value y) {
    y = dropout(graph_, fmt::format("{}.{}.dropout", name_, name), y, spec_.dropout, spec_.mode);
    return add(graph_, fmt::format("{}.{}.sum", name_, name), x, y);
  }

  Graph& graph_;
  const std::string name_;
  const VitSpec& spec_;
};

/// [N, width, patches + 1]: the class token, then the patches, with their positions.
Value patch_sequence(Graph& graph, Value image, const VitSpec& spec) {
  const Value grid = conv(graph, "patch_embed.proj", image,
                          {.out_channels = spec.width,
                           .kernel = {spec.patch, spec.patch, 1},
                           .stride = {spec.patch, spec.patch, 1},
                           .bias = true});
  const int64_t patches = graph.shape(grid).elements_from(2);
  const Value x = reshape(graph, "patch_embed", grid, {spec.width, patches});
  const Value token =
      graph.parameter("cls_token", {1, 1, spec.width}, {.kind = Init::Kind::normal, .value = 1e-6});
  const Value positions =
      graph.parameter("pos_embed", {1, patches + 1, spec.width}, cut_normal(kVitDeviation));
  return add_positions_by(graph, "embed", prepend_token(graph, "cls", x, token), positions);
}

}  // namespace

Value vit_logits(Graph& graph, Value image, const VitSpec& spec) {
  require_patches(spec, graph.shape(image));
  Value x = dropout(graph, "pos_drop", patch_sequence(graph, image, spec), spec.dropout, spec.mode);
  for (int64_t i = 0; i < spec.depth; ++i) {
    VitBlock block(graph, fmt::format("blocks.{}", i), spec);
    x = block.transform(block.attend(x));
  }
  x = slice(graph, "class", x, {{0, spec.width}, {0, 1}});  // norms are each position's own
  x = reshape(graph, "features", layer_norm(graph, "norm", x, kVitNorm), {spec.width});
  return dense(graph, "head", x,
               {.outputs = spec.classes,
                .init = Init::Kind::truncated_normal,
                .init_value = kVitDeviation,
                .bias_init = Init::Kind::zeros});
}

}  // namespace tutti
