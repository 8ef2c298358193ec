#include "tutti/comm/compress/node_groups.h"

#include <fmt/format.h>

#include "tutti/base/error.h"

namespace tutti::comm {

NodeGroups::NodeGroups(Communicator& whole, int ranks_per_node) {
  const int node = ranks_per_node > 0 ? whole.rank() / ranks_per_node : whole.node(whole.rank());
  node_ = whole.split(node, whole.rank());
  for (const int size : whole.allgather_value(node_->size()))
    if (size != node_->size())
      throw ConfigError(
          fmt::format("{} ranks are {} on one node and {} on another: hierarchical compression "
                      "needs equally many on every node",
                      whole.size(), node_->size(), size));
  across_ = whole.split(node_->rank(), whole.rank());
  node_ranks_ = node_->allgather_value(whole.rank());
  across_ranks_ = across_->allgather_value(whole.rank());
}

}  // namespace tutti::comm
