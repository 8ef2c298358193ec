#pragma once
// The graph of a language model's evaluation, rewritten for one position of each sequence.
// TokenSteps runs it.

#include <optional>
#include <vector>

#include "tutti/models/block/model.h"

namespace tutti::train {

struct StepGraph {
  /// Keys and values of a layer: an input [N, channels, window - 1] with the stored ones, and the
  /// output [N, channels, 1] of this position.
  struct Layer {
    graph::Value kept, made;
  };
  /// A value of `before` that `graph` has as an input.
  struct Crossing {
    graph::Value before, input;
  };
  graph::Graph graph;
  graph::Value token, position, seen,
      logits;  ///< i32 [N, 1], i32 [N, 1], i32 [N, window]; f32 [N, V, 1]
  std::vector<Layer> layers;
  graph::Graph before;  ///< computes everything that does not depend on the tokens
  graph::Value source;  ///< its input; invalid: it has none
  std::vector<Crossing> crossings;
};

/// `model` is built for evaluation of one position of the input `tokens`. `seen` is 0 where a key
/// is stored and negative elsewhere; its last entry is this position's own key. Returns nothing
/// where attention among tokens is not causal or is masked, where the graph has no loss over
/// tokens, or where it reads more than one other input.
std::optional<StepGraph> step_graph(const models::ModelGraph& model, graph::Value tokens,
                                    int64_t window, int64_t rows, int64_t sources);

}  // namespace tutti::train
