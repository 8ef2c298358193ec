#pragma once
// Which layers of a network ranks can share, found in its graph. Private to split.
//
//   columns -> what works channel by channel, or head by head -> rows
// A layer cut by columns of its outputs makes some channels on each rank; activations, products and
// attention work on these alone; a layer cut by rows of its inputs ends it. Where other ops read
// such channels, or they come from elsewhere, the layers stay whole.

#include <map>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/graph/tensor_slice.h"

namespace tutti {

/// How ranks share a node.
enum class TensorCut : uint8_t {
  none,     ///< computed by all alike
  columns,  ///< each makes some channels
  inside,   ///< between columns and rows
  rows,     ///< each reads some channels; their results add up
  lookup,   ///< each has some rows of the vocabulary
  loss,     ///< of logits of which each has some
  hits      ///< likewise
};

struct TensorRule {
  std::vector<TensorCut> nodes;                         ///< by node
  std::map<int32_t, std::vector<ChannelBlock>> blocks;  ///< by value that ranks share
  int64_t columns = 0, rows = 0, heads = 0;             ///< layers, and attentions among them
  bool vocabulary = false;
};

TensorRule find_tensor_rule(const Graph& graph, int ranks);

/// Inputs (x, weight, [bias]) of a layer that makes each position's channels from that position's:
/// a convolution of width 1, or a dense layer of vectors.
bool is_linear(const Graph& graph, const Node& node);

}  // namespace tutti
