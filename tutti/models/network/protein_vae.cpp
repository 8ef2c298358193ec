#include "tutti/models/network/protein_vae.h"

namespace tutti::models {
namespace {

constexpr std::array<int64_t, 4> kStrides{1, 2, 1, 1};

void require_maps(const Shape& x) {
  require(x.rank() == 4 && x[1] == 1 && x[2] == x[3] && x[2] >= 4,
          "protein-vae: takes contact maps [1, S, S] with S of 4 or more, met {} with the batch",
          x);
}

/// Returns a 3x3 convolution; with stride 2 the padding is at the end alone, as in TensorFlow's
/// "same".
ops::ConvSpec same(int64_t channels, int64_t stride) {
  return {.out_channels = channels,
          .kernel = ops::in_all(3),
          .stride = ops::in_all(stride),
          .pad = ops::in_all(stride == 1 ? 1 : 0),
          .pad_high = ops::in_all(1),
          .bias = true,
          .init = Init::Kind::glorot_uniform,
          .bias_init = Init::Kind::zeros};
}

Value glorot_dense(Graph& graph, const std::string& name, Value x, int64_t outputs) {
  return ops::dense(
      graph, name, x,
      {.outputs = outputs, .init = Init::Kind::glorot_uniform, .bias_init = Init::Kind::zeros});
}

Value encoded(Graph& graph, Value x, const ProteinVaeSpec& spec) {
  for (size_t i = 0; i < kStrides.size(); ++i) {
    const std::string name = fmt::format("conv{}", i + 1);
    x = ops::relu(graph, name + ".relu", ops::conv(graph, name, x, same(spec.maps, kStrides[i])));
  }
  x = ops::dropout(graph, "dropout", x, spec.dropout, spec.mode);
  return ops::relu(graph, "fc1.relu", glorot_dense(graph, "fc1", x, spec.hidden));
}

Value decoded(Graph& graph, Value z, int64_t side, const ProteinVaeSpec& spec) {
  Value x = ops::relu(graph, "fc2.relu", glorot_dense(graph, "fc2", z, spec.hidden));
  x = ops::relu(graph, "fc3.relu", glorot_dense(graph, "fc3", x, spec.maps * side * side));
  x = ops::reshape(graph, "maps", x, {spec.maps, side, side});
  for (size_t i = kStrides.size(); i-- > 1;) {
    const std::string name = fmt::format("deconv{}", kStrides.size() - i);
    x = ops::relu(graph, name + ".relu",
                  ops::conv_transpose(graph, name, x, same(spec.maps, kStrides[i])));
  }
  return ops::conv_transpose(graph, fmt::format("deconv{}", kStrides.size()), x,
                             same(1, kStrides[0]));
}

}  // namespace

ProteinVae protein_vae(Graph& graph, Value maps, const ProteinVaeSpec& spec) {
  require_maps(graph.shape(maps));
  const int64_t side = graph.shape(maps)[2], half = (side + 1) / 2;
  Value x = maps;
  if (side % 2 == 1) x = ops::pad(graph, "even", x, {0, 0, 0}, {0, 1, 1});
  x = encoded(graph, x, spec);
  ProteinVae made;
  made.mean = glorot_dense(graph, "z_mean", x, spec.latent);
  made.logvar = glorot_dense(graph, "z_log_var", x, spec.latent);
  const Value z = ops::gaussian_sample(graph, "z", made.mean, made.logvar, 1, spec.mode);
  made.logits = decoded(graph, z, half, spec);
  if (side % 2 == 1)
    made.logits = ops::slice(graph, "odd", made.logits, {{0, 1, 1}, {0, side, 1}, {0, side, 1}});
  return made;
}

void build_protein_vae(ModelBuilder& model) {
  ProteinVaeSpec spec{.mode = model.spec().mode};
  if (model.spec().width > 0) spec.maps = model.spec().width;
  if (model.spec().dropout) spec.dropout = *model.spec().dropout;
  Graph& graph = model.graph();
  const Value maps = model.input();
  const ProteinVae vae = protein_vae(graph, maps, spec);
  model.predict(vae.logits);
  model.read_out("z_mean", vae.mean);
  model.read_out("z_log_var", vae.logvar);
  if (!model.training()) return;
  const Shape& shape = graph.shape(vae.logits);
  const Value target = model.target(model.spec().target_field, {DType::f32, shape, {}});
  model.add_loss(ops::pointwise_loss(graph, "loss",
                                     ops::convert(graph, "logits", vae.logits, DType::f32), target,
                                     {.kind = ops::PointwiseLossKind::bce_with_logits,
                                      .scale = static_cast<float>(shape[2] * shape[3])}));
  model.add_loss(ops::gaussian_kl(graph, "divergence",
                                  ops::convert(graph, "mean", vae.mean, DType::f32),
                                  ops::convert(graph, "logvar", vae.logvar, DType::f32),
                                  1.f / static_cast<float>(spec.latent)));
}

}  // namespace tutti::models
