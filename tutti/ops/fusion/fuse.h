#pragma once
// Graph rewrites that save trips through memory. A graph is append-only, so a rewrite builds a new
// one: nodes that remain keep their names and their order.

#include <span>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

struct Rewritten {
  Graph graph;
  std::vector<Value>
      of;  ///< for each value id of the old graph, the value in the new one; invalid if it is gone
};

/// Joins the value maps of two rewrites that were done one after the other.
Rewritten in_turn(const Rewritten& first, Rewritten second);

/// Run before differentiate. Makes one op of batch norm -> [add] -> ReLU and one of convolution ->
/// activation (unless the activation's gradient needs its argument), and takes a maximum over
/// windows before the activation that it reads. Does so only where nothing else reads the
/// intermediate results and they are no outputs.
Rewritten fuse_forward(const Graph& graph);

/// Run before differentiate. Makes one op (ops/sequence/token_head.h) of the output layer of a
/// large vocabulary and its loss, where nothing else but TokenHits reads the logits. `trained`:
/// parameters whose gradients are wanted; none: an evaluation.
Rewritten fuse_heads(const Graph& graph, std::span<const Value> trained);

/// Run after differentiate. A batch norm's backward reduction that reads the sum of two gradients
/// adds them itself.
Rewritten fold_residual_sums(const Graph& graph);

/// Run after differentiate. Joins sums of rows (AddRows) that are added to each other.
Rewritten fold_row_sums(const Graph& graph);

/// Run after differentiate, for a weight that a Lookup and other ops read: the Lookup's gradient
/// adds the rest of the weight's gradient in the rest's own memory.
Rewritten fold_lookup_sums(const Graph& graph);

/// Run after differentiate, where each op costs a launch (Backend::joins_moves()). Makes one op of
/// a Slice and the Pad with zeros or the SliceGrad that alone reads it.
Rewritten join_moves(const Graph& graph);

/// Drops the nodes that only differentiate needs (RuleOnly, ops/rank_sums.h); the inputs that their
/// results equal are read in their place.
Rewritten drop_copies(const Graph& graph);

/// Run after differentiate, whose first node is number `first_backward`. A batch norm (without
/// residual) that one op reads forward is computed again where backward needs it, from the
/// convolution's output that is kept anyway. One pass over a tile in cache saves writing its result
/// to memory: half of what a residual network stores. The same is done with depthwise convolutions
/// that one op reads, which take a few operations a number; with norms of positions and activations
/// like GELU, whose arguments are kept anyway; and with slabs' rows (GatherRows), together with the
/// batch norm that they are rows of.
Rewritten recompute_activations(const Graph& graph, size_t first_backward);

/// Run after differentiate, for a team of that many threads. Work that divides badly by samples is
/// done by the team as a whole (Walk::whole). Attention of fewer samples than keep the threads busy
/// is shared by heads. The gradient of large weights with one tap (sequences) or three taps in each
/// dimension is shared by outputs: shared by samples, each thread would have a copy of it, or of
/// its Winograd points, to add to the others' copies. With three taps a single thread gains, too:
/// it keeps the points of a few outputs at a time.
Rewritten share_in_team(const Graph& graph, int threads);

}  // namespace tutti::ops
