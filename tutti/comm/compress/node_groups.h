#pragma once
// NodeGroups: a communicator cut twice, into the ranks of one node and into the ranks with the same
// place on their nodes. Made once, used by every hierarchical operation.

#include <memory>
#include <vector>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

class NodeGroups {
 public:
  /// Cuts `whole`. Collective. ranks_per_node 0: by the machine's nodes; otherwise that many
  /// neighbouring ranks count as a node, for example those of a socket or of a rack. Throws
  /// ConfigError unless nodes have equally many ranks. Must not outlive what `whole` needs.
  explicit NodeGroups(Communicator& whole, int ranks_per_node = 0);

  /// Returns the ranks of this node, in the order of the whole.
  Communicator& node() const { return *node_; }
  /// Returns one rank of each node: those with this rank's place on their nodes.
  Communicator& across() const { return *across_; }
  /// Return the members' ranks in the whole.
  const std::vector<int>& node_ranks() const { return node_ranks_; }
  const std::vector<int>& across_ranks() const { return across_ranks_; }

 private:
  std::unique_ptr<Communicator> node_;
  std::unique_ptr<Communicator> across_;
  std::vector<int> node_ranks_;
  std::vector<int> across_ranks_;
};

}  // namespace tutti::comm
