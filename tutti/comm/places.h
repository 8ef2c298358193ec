#pragma once
// Places: where the ranks of a communicator are: hosts, nodes, and who sees whose memory.

#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/transport/neighbours.h"

namespace tutti::comm {

struct Place {
  std::string host;
  int node = 0;    ///< ranks with equal numbers are on one node
  int kernel = 0;  ///< ranks with equal numbers share cores; the same as the node but where
                   ///< containers count as nodes
  int memory = 0;  ///< ranks with equal numbers see each other's memory; they are on one node
};

/// Immutable. A few bytes a rank.
class Places {
 public:
  /// Of all ranks, as rank `mine` sees them.
  Places(std::vector<Place> all, int mine);

  const Place& operator[](int rank) const { return all_[static_cast<size_t>(rank)]; }
  const std::vector<Place>& all() const { return all_; }
  int local_rank() const { return local_rank_; }  ///< among the ranks of this node, in rank order
  int local_size() const { return local_size_; }
  int sharing_cores() const { return sharing_cores_; }  ///< ranks under this kernel
  /// The ranks that see each other's memory: on this rank's node, in its process namespace.
  const std::shared_ptr<const Neighbours>& neighbours() const { return neighbours_; }
  /// Whether any ranks see each other's memory; the same on every rank.
  bool shares_memory() const { return shares_memory_; }
  /// What places say of each rank, numbered from 0 in the order in which the values first appear;
  /// empty where all say the same.
  std::vector<int> numbered(int Place::*what) const;

 private:
  std::vector<Place> all_;
  int local_rank_ = 0, local_size_ = 0, sharing_cores_ = 0;
  std::shared_ptr<const Neighbours> neighbours_;
  bool shares_memory_ = false;
};

}  // namespace tutti::comm
