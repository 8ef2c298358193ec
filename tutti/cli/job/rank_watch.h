#pragma once
// Watches the ranks of a job for the process that started them: their reports in the table, and
// which of their processes exist.

#include <vector>

#include "tutti/cli/job/rank_table.h"

namespace tutti::cli {

class RankWatch {
 public:
  /// The table must outlive it.
  explicit RankWatch(const RankTable& table)
      : table_(table), gone_(static_cast<size_t>(table.ranks()), false) {}

  /// Checks which processes have ended. `ending`: the job is being ended, so an end has no meaning.
  void look(bool ending);
  /// Returns the ranks that ended first without leaving a code (JobEnd::first_gone).
  const std::vector<int>& first_gone() const { return first_gone_; }

  /// Returns the ranks of this host that have begun and existed at the last look.
  std::vector<int> alive() const;
  std::vector<int> stopped() const;  ///< those of them that a signal has stopped
  void signal(int number) const;     ///< sends a signal to all living ranks
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
  /// Returns whether ranks have failed for another reason than missing one of `gone`.
  bool failed_before(const std::vector<int>& gone) const;
  bool is_alive(int rank) const {
    return table_.row(rank).process != 0 && !gone_[static_cast<size_t>(rank)];
  }

  const RankTable& table_;
  std::vector<bool> gone_;
  std::vector<int> first_gone_;
};

}  // namespace tutti::cli
