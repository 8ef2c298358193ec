#pragma once
// The ranks of a job, as the process that started them sees them: what they have left in the table,
// and which of their processes are there.

#include <vector>

#include "tutti/cli/job/rank_table.h"

namespace tutti {

class RankWatch {
 public:
  /// The table must outlive it.
  explicit RankWatch(const RankTable& table)
      : table_(table), gone_(static_cast<size_t>(table.ranks()), false) {}

  /// Looks which processes have ended. `ending`: the job is being ended, so that it tells nothing.
  void look(bool ending);
  /// Those that were gone first without having left a code (JobEnd::first_gone).
  const std::vector<int>& first_gone() const { return first_gone_; }

  /// Ranks of this host that have begun and were there at the last look.
  std::vector<int> alive() const;
  std::vector<int> stopped() const;  ///< those of them that a signal has stopped
  void signal(int number) const;     ///< to all that are alive
  void kill_stopped() const;
  template <class Wanted>
  int count(Wanted wanted) const {
    int ranks = 0;
    for (int rank = 0; rank < table_.ranks(); ++rank)
      if (wanted(table_.row(rank))) ++ranks;
    return ranks;
  }
  int begun() const {
    return count([](const RankRow& row) { return row.state != RankState::absent; });
  }

 private:
  /// Whether ranks have failed, and not because they have missed one of `gone`.
  bool failed_before(const std::vector<int>& gone) const;
  bool is_alive(int rank) const {
    return table_.row(rank).process != 0 && !gone_[static_cast<size_t>(rank)];
  }

  const RankTable& table_;
  std::vector<bool> gone_;
  std::vector<int> first_gone_;
};

}  // namespace tutti
