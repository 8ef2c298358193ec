#pragma once
// PendingStages: the stages of an update that are not over yet, and which of them comes next.

#include <algorithm>
#include <vector>

#include "tutti/plan/plan.h"
#include "tutti/plan/run/exchanges.h"

namespace tutti::plan {

/// Not thread-safe. The plan must outlive it.
class PendingStages {
 public:
  explicit PendingStages(const Plan& plan) : plan_(plan), pending_(plan.stages.size(), 0) {}

  /// All stages are pending from now on.
  void begin() { std::ranges::fill(pending_, char{1}); }
  bool any() const {
    return std::ranges::any_of(pending_, [](char pending) { return pending != 0; });
  }
  bool contains(int stage) const { return pending_[static_cast<size_t>(stage)] != 0; }
  void remove(int stage) { pending_[static_cast<size_t>(stage)] = 0; }
  /// Returns the first stage that can run without waiting; `exchanges` may be null. If there is
  /// none: the first pending stage with `may_wait`, otherwise -1. So a rank that waits has begun
  /// everything that others need to get there, and ranks cannot wait for each other.
  int next(Exchanges* exchanges, bool may_wait) const;

 private:
  const Plan& plan_;
  std::vector<char> pending_;  // by stage
};

}  // namespace tutti::plan
