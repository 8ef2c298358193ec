#pragma once
// Finds in a network's graph which layers ranks can share. Private to split.
//
//   columns -> ops that work channel by channel, or head by head -> rows
// A layer cut by columns of its outputs makes some channels on each rank; activations, products and
// attention work on these channels only; a layer cut by rows of its inputs ends the run. If other
// ops read or make such channels, the layers stay whole.

#include <map>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/graph/tensor_slice.h"

namespace tutti::split {

/// How ranks share a node.
enum class TensorCut : uint8_t {
  none,     ///< computed identically by all
  columns,  ///< each rank makes some channels
  inside,   ///< between columns and rows
  rows,     ///< each rank reads some channels; the results add up
  lookup,   ///< each rank has some rows of the vocabulary
  loss,     ///< a loss of logits that are divided among ranks
  hits      ///< hits, counted from such logits
};

struct TensorRule {
  std::vector<TensorCut> nodes;                                ///< by node
  std::map<int32_t, std::vector<graph::ChannelBlock>> blocks;  ///< by value that ranks share
  int64_t columns = 0, rows = 0, heads = 0;  ///< numbers of layers, attentions among them
  bool vocabulary = false;
};

TensorRule find_tensor_rule(const graph::Graph& graph, int ranks);

/// Whether the node is a layer with inputs (x, weight, [bias]) that makes each position's channels
/// from the same position: a convolution of width 1, or a dense layer of vectors.
bool is_linear(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::split
