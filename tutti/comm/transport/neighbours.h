#pragma once
// Neighbours: the ranks of a communicator that see each other's memory.

#include <algorithm>
#include <span>
#include <vector>

namespace tutti::comm {

/// Includes this rank, which is alone where it shares memory with no other. In rank order. A
/// neighbour of one is a neighbour of all of them.
class Neighbours {
 public:
  explicit Neighbours(std::vector<int> ranks) : ranks_(std::move(ranks)) {}
  int size() const { return static_cast<int>(ranks_.size()); }
  std::span<const int> ranks() const { return ranks_; }
  /// Returns the lowest of them: it holds the memory that they share.
  int first() const { return ranks_.front(); }
  /// Returns the index of `rank` among them; -1 when it is none.
  int index(int rank) const {
    const auto at = std::ranges::lower_bound(ranks_, rank);
    return at != ranks_.end() && *at == rank ? static_cast<int>(at - ranks_.begin()) : -1;
  }

 private:
  std::vector<int> ranks_;
};

}  // namespace tutti::comm
