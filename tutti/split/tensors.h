#pragma once
// Tensor parallelism (Shoeybi et al. 2019): ranks share the layers of one replica, each with
// slices of their weights. A pair of layers needs only two sums over ranks: of its results forward,
// and of the gradient of its input backward. Embedding and output layer are shared by tokens of the
// vocabulary; for the loss ranks exchange three numbers per position.

#include <string>

#include "tutti/graph/tensor_slice.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/split/grid.h"

namespace tutti::split {

struct SplitTensors {
  ops::Rewritten rewritten;
  graph::TensorSlices slices;  ///< empty if nothing is shared
  std::string text;            ///< which layers ranks share and which not, for the log
};

/// Rewrites a whole forward graph, before differentiate() and before samples are cut into slabs.
/// Which layers are shared follows from the graph (tensor_rule.h); every rank computes everything
/// else, and the loss, identically, and gets the same gradients for it. A grid without tensors
/// returns the graph unchanged. Throws ConfigError if ranks can share no layer.
SplitTensors split_tensors(const graph::Graph& graph, const PartGrid& grid);

}  // namespace tutti::split
