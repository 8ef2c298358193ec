#pragma once
// Graph rewrites that save trips through memory. A graph is append-only, so a rewrite builds a new
// one: same names, same order of what remains.

#include <span>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

struct Rewritten {
  Graph graph;
  std::vector<Value>
      of;  ///< for each value id of the old graph, the value in the new one; invalid if it is gone
};

/// Both, one after the other.
Rewritten in_turn(const Rewritten& first, Rewritten second);

/// Before differentiate: batch norm -> [add] -> ReLU becomes one op, convolution -> activation (but
/// those whose gradient needs their argument) becomes one op, and of an activation and a maximum
/// over windows the maximum is taken first. Only where nobody else reads the intermediate results
/// and they are no outputs.
Rewritten fuse_forward(const Graph& graph);

/// Before differentiate: the output layer of a large vocabulary and its loss become one op
/// (ops/sequence/token_head.h), where nobody else reads the logits but who judges them. `trained`:
/// parameters whose gradients are wanted; none: an evaluation.
Rewritten fuse_heads(const Graph& graph, std::span<const Value> trained);

/// After differentiate: a batch norm's backward reduction that reads the sum of two gradients adds
/// them itself.
Rewritten fold_residual_sums(const Graph& graph);

/// After differentiate: sums of rows (AddRows) that are added are one op.
Rewritten fold_row_sums(const Graph& graph);

/// After differentiate: the gradient of a weight that is looked up in (Lookup) and read elsewhere,
/// too, takes in the rest of its sum, in the rest's own memory.
Rewritten fold_lookup_sums(const Graph& graph);

/// Without the nodes that say something to differentiate alone (RuleOnly, ops/rank_sums.h): what
/// their results are is read in their place.
Rewritten drop_copies(const Graph& graph);

/// After differentiate, whose first node is number `first_backward`: a batch norm (without
/// residual) that one op reads forward is computed again where backward needs it, from the
/// convolution's output that is kept anyway. One pass over a tile in cache buys that its result
/// never goes to memory: half of what a residual network stores. So are depthwise convolutions that
/// one op reads, a few operations a number, norms of positions and activations like GELU, whose
/// arguments are kept anyway, and slabs' rows (GatherRows), together with the batch norm that they
/// are rows of.
Rewritten recompute_activations(const Graph& graph, size_t first_backward);

/// After differentiate, for a team of so many threads: what samples share out badly is done by the
/// team as a whole (Walk::whole). Attention of fewer samples than keep the threads busy is shared
/// by heads. So is the gradient of large weights by outputs, of one tap (sequences) or of three in
/// each dimension: of samples, each thread would have a copy of it, or of its points, to add to the
/// others'. Of three taps one thread gains, too: it keeps the points of a few outputs at a time.
Rewritten share_in_team(const Graph& graph, int threads);

}  // namespace tutti
