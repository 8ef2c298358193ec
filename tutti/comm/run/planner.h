#pragma once
// Planner: turns a rank's request into an operation that all ranks of a group have agreed on. The
// rank first does all that it can do alone: task, algorithm, schedules, memory, channels. Then one
// small message up and down the tree of this group, and of no other, finds whether all ranks plan
// the same.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tutti/comm/run/collective.h"
#include "tutti/comm/schedule/selection.h"

namespace tutti::comm {

class Communicator;

/// Not thread-safe.
class Planner {
 public:
  explicit Planner(Communicator& communicator) : communicator_(communicator) {}

  /// Collective. See Communicator::plan.
  std::unique_ptr<CollectiveOperation> plan(const CollectiveSpec& spec);
  /// Returns the task that plan() gives to an algorithm on this rank.
  Task task_of(const CollectiveSpec& spec) const;

  const Selection& selection() const { return selection_; }
  /// Sets which algorithm plan() takes where the spec names none. The same on every rank.
  void set_selection(Selection selection) { selection_ = std::move(selection); }

 private:
  /// A plan of this rank alone.
  struct Draft {
    std::string what;  ///< name in messages
    Task task = {};
    std::string algorithm = {};
    std::unique_ptr<CollectiveOperation> operation = {};
  };
  void make(const CollectiveSpec& spec, Draft& draft);
  /// Returns the algorithm for a spec without errors of this rank. Throws CommError or ConfigError.
  std::string algorithm_for(const CollectiveSpec& spec, const Draft& draft) const;
  /// Logs the text of explain_choice(), once for each kind and algorithm.
  void tell_choice(const Task& task, size_t element_bytes, const std::string& algorithm);
  /// Says whether all ranks plan the same, and whether channels lack memory on any.
  struct Agreement {
    bool same = true;
    bool lacking = false;
  };
  Agreement agree_on(uint64_t fingerprint);
  /// Returns why the ranks do not plan the same. All fingerprints are gathered only for this.
  std::string disagreement(uint64_t fingerprint, const std::string& what, const Task& task,
                           const std::string& plan);
  std::string unequal_parts(const Task& task, const std::string& what, int p);
  /// Names a rank of an all_to_all that sends another rank a different number of elements than that
  /// rank receives; empty when there is none.
  std::string unequal_blocks(const Task& task, const std::string& what);

  Communicator& communicator_;
  Selection selection_;
  std::set<std::pair<Collective, std::string>> logged_;  // logged by tell_choice()
};

}  // namespace tutti::comm
