#include "tutti/models/network/vit.h"

namespace tutti::models {
namespace {

void require_patches(const VitSpec& spec, const Shape& x) {
  require(
      x.rank() == 4 && x[2] % spec.patch == 0 && x[3] % spec.patch == 0,
      "vit: patches of {0} x {0} do not fill samples of {1}: choose model.kernel, the side of a "
      "patch, so that it divides both sides of the image",
      spec.patch, Shape(std::span(x.begin() + 1, x.end())).to_string());
  require_whole_heads("vit", spec.encoder);
}

/// Returns [N, width, patches + 1]: the class token, then the patches, with their positions.
Value patch_sequence(Graph& graph, Value image, const VitSpec& spec) {
  const int64_t width = spec.encoder.width;
  const Value grid = ops::conv(graph, "patch_embed.proj", image,
                               {.out_channels = width,
                                .kernel = {spec.patch, spec.patch, 1},
                                .stride = {spec.patch, spec.patch, 1},
                                .bias = true});
  const int64_t patches = graph.shape(grid).elements_from(2);
  const Value x = ops::reshape(graph, "patch_embed", grid, {width, patches});
  const Value token =
      graph.parameter("cls_token", {1, 1, width}, {.kind = Init::Kind::normal, .value = 1e-6});
  const Value positions = graph.parameter("pos_embed", {1, patches + 1, width}, encoder_init());
  return ops::add_positions_by(graph, "embed", ops::prepend_token(graph, "cls", x, token),
                               positions);
}

}  // namespace

Value vit_logits(Graph& graph, Value image, const VitSpec& spec) {
  require_patches(spec, graph.shape(image));
  const EncoderSpec& encoder = spec.encoder;
  Value x = ops::dropout(graph, "pos_drop", patch_sequence(graph, image, spec), encoder.dropout,
                         encoder.mode);
  x = encoder_layers(graph, x, {}, encoder);
  x = ops::slice(graph, "class", x, {{0, encoder.width}, {0, 1}});  // the norm after this works on
                                                                    // each position by itself
  x = ops::reshape(graph, "features", ops::layer_norm(graph, "norm", x, kEncoderNorm),
                   {encoder.width});
  return ops::dense(graph, "head", x,
                    {.outputs = spec.classes,
                     .init = Init::Kind::truncated_normal,
                     .init_value = kEncoderDeviation,
                     .bias_init = Init::Kind::zeros});
}

}  // namespace tutti::models
