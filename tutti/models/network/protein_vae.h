#pragma once
// The convolutional variational autoencoder of contact maps of protein folding (Bhowmik, Gao,
// Young, Ramanathan 2018, "Deep clustering of protein folding simulations", and its published
// program).

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

struct ProteinVaeSpec {
  int64_t maps = 64;     ///< channels of each convolution
  int64_t hidden = 128;  ///< outputs of the dense layers before and after the latent numbers
  int64_t latent = 3;
  float dropout = 0;  ///< before the encoder's dense layer
  ops::Mode mode = ops::Mode::train;
};

struct ProteinVae {
  Value mean, logvar;  ///< [N, latent]
  Value logits;        ///< logits of the contact map, [N, 1, S, S]
};

/// maps [N, 1, S, S] with S >= 4 -> the latent numbers and the reconstructed map. Four 3x3
/// convolutions with ReLU, the second of stride 2; dense layers; four transposed convolutions in
/// the opposite order. Odd maps are padded to even ones with zeros, and the reconstruction of the
/// padding is cut off. The decoder reads z = mean + exp(logvar) e in training, as in the published
/// program, and the mean in evaluations. Throws ConfigError for maps of another shape.
ProteinVae protein_vae(Graph& graph, Value maps, const ProteinVaeSpec& spec = {});

/// Builds the model with the losses of the program: binary cross-entropy summed over a map, and the
/// divergence from N(0, 1) averaged over the latent numbers. Evaluations read out z_mean and
/// z_log_var.
void build_protein_vae(ModelBuilder& model);

}  // namespace tutti::models
