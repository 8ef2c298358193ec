#pragma once
// Places: the hosts and nodes of a communicator's ranks, and which ranks see each other's memory.

#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/transport/neighbours.h"

namespace tutti::comm {

struct Place {
  std::string host;
  int node = 0;    ///< ranks with equal numbers are on one node
  int kernel = 0;  ///< ranks with equal numbers share cores; differs from the node only where
                   ///< containers count as nodes
  int memory = 0;  ///< ranks with equal numbers see each other's memory; they are on one node
};

/// Immutable. Takes a few bytes a rank.
class Places {
 public:
  /// Takes the places of all ranks, as rank `mine` sees them.
  Places(std::vector<Place> all, int mine);

  const Place& operator[](int rank) const { return all_[static_cast<size_t>(rank)]; }
  const std::vector<Place>& all() const { return all_; }
  int local_rank() const { return local_rank_; }  ///< index in rank order on this node
  int local_size() const { return local_size_; }
  int sharing_cores() const { return sharing_cores_; }  ///< number of ranks under this kernel
  /// Returns the ranks that see each other's memory: on this rank's node, in its process namespace.
  const std::shared_ptr<const Neighbours>& neighbours() const { return neighbours_; }
  /// Returns whether any ranks see each other's memory; the same on every rank.
  bool shares_memory() const { return shares_memory_; }
  /// Returns the field `what` of every rank, its values renumbered from 0 in the order in which
  /// they first appear; empty where all are equal.
  std::vector<int> numbered(int Place::*what) const;

 private:
  std::vector<Place> all_;
  int local_rank_ = 0, local_size_ = 0, sharing_cores_ = 0;
  std::shared_ptr<const Neighbours> neighbours_;
  bool shares_memory_ = false;
};

}  // namespace tutti::comm
