#pragma once
// The deep learning recommendation model (Naumov et al. 2019, "Deep Learning Recommendation Model
// for Personalization and Recommendation Systems"), which predicts clicks.
//
//   x   = bottom MLP of the numbers [N, numbers] -> [N, width]
//   e_i = the row of table i that category i names, or the sum or mean of those that a bag of
//         categories names, weighted or not [N, width]
//   y   = top MLP of (x, the dot products of all pairs of x, e_1, e_2 ...), or of (x, e_1, e_2 ...)
//         -> [N, 1], a logit
//
// All layers but the last have a ReLU. Parameters have the names of facebookresearch/dlrm
// (bot_l.0.weight, emb_l.0.weight, top_l.0.weight) and start as there: N(0, 2 / (m + n)), biases
// N(0, 1 / outputs), tables of n rows U(-1 / sqrt(n), 1 / sqrt(n)).

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

struct DlrmSpec {
  int64_t width = 16;
  /// Hidden layers of both MLPs, with the sizes published for Criteo's Kaggle set.
  std::vector<int64_t> bottom{512, 256, 64}, top{512, 256};
  std::vector<int64_t> rows{};  ///< number of rows in each table
  std::vector<int64_t> bags{};  ///< columns of each table's bags; empty: one each
  Pooling pooling = Pooling::sum;
  FeatureInteraction interaction = FeatureInteraction::dot;
};

/// `numbers` are [N, ...] of any activation type, `categories` i32 [N, columns of all bags] and
/// `weights`, if valid, f32 of the same shape.
Value dlrm_logit(Graph& graph, Value numbers, Value categories, Value weights,
                 const DlrmSpec& spec);

void build_dlrm(ModelBuilder& model);

}  // namespace tutti::models
