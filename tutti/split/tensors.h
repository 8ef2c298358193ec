#pragma once
// Tensor parallelism (Shoeybi et al. 2019): ranks share the layers of one replica, each with slices
// of their weights. Two sums over ranks are all that a pair of layers needs: of its results
// forward, and of the gradient of what it reads backward. Embedding and output layer are shared by
// tokens of the vocabulary; of the loss ranks exchange three numbers a position.

#include <string>

#include "tutti/graph/tensor_slice.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/split/grid.h"

namespace tutti {

struct SplitTensors {
  Rewritten rewritten;
  TensorSlices slices;  ///< empty where nothing is shared
  std::string text;     ///< what ranks share and what not, for the log
};

/// Of a whole forward graph, before differentiate and before samples are cut into slabs. Which
/// layers are shared follows from the graph (tensor_rule.h); all else, and the loss, every rank
/// computes alike, and gets the same gradients for it. A grid without tensors gives the graph back
/// as it is. ConfigError where ranks can share no layer.
SplitTensors split_tensors(const Graph& graph, const PartGrid& grid);

}  // namespace tutti
