#pragma once
// Maps replicas to ranks. A replica is one logical data-parallel worker with its own local batch,
// data shard and batch-norm statistics; a job has R of them on P <= R ranks, and a rank runs its
// replicas one after another.

#include <utility>
#include <vector>

#include "tutti/comm/schedule/tree.h"

namespace tutti::exchange {

/// A plain value, the same on every rank except for `rank`.
class ReplicaMap {
 public:
  /// Throws ConfigError when there are fewer replicas than ranks.
  ReplicaMap(int replicas, int ranks, int rank);

  /// Returns the map with each replica split into `micro_batches`, which its rank runs one
  /// after another: those numbered r * micro_batches and up belong to replica r.
  ReplicaMap times(int micro_batches) const;

  int replicas() const { return replicas_; }
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  comm::Range owned() const {
    return {first_[static_cast<size_t>(rank_)], first_[static_cast<size_t>(rank_) + 1]};
  }
  int local_count() const { return owned().size(); }
  /// Returns the largest local_count() of any rank.
  int most_per_rank() const { return first_[1]; }
  int replica(int local) const { return owned().lo + local; }
  /// Returns the rank that runs `replica`.
  int owner(int replica) const;
  /// Returns ranks() + 1 entries: rank p owns [first[p], first[p + 1]).
  const std::vector<int>& first() const { return first_; }

 private:
  ReplicaMap(std::vector<int> first, int rank)
      : replicas_(first.back()), ranks_(static_cast<int>(first.size()) - 1), rank_(rank),
        first_(std::move(first)) {}

  int replicas_;
  int ranks_;
  int rank_;
  std::vector<int> first_;
};

}  // namespace tutti::exchange
