#pragma once
// The algorithms of comm/: each is a file here with its steps-and-bytes formula, and an entry in
// algorithms().

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

/// What an algorithm costs the busiest rank, by its formula. Elements, not bytes. Exact where ranks
/// divide the count; otherwise rounded up.
struct Steps {
  double rounds = 0;   ///< messages that follow each other
  double moved = 0;    ///< elements that a rank sends, or receives if that is more
  double reduced = 0;  ///< additions that a rank does, at most
};

struct Algorithm {
  std::string_view name;
  /// Why it does not do this kind among these ranks; empty when it does. Callers ask refusal_of().
  std::string (*refusal)(const Task& task);
  Schedule (*schedule)(const Task& task);
  Steps (*steps)(const Task& task);
  /// Whether the sum is taken in the order of comm/schedule/tree.h over the rank index: the same
  /// bits by every algorithm that says so. Moving elements is always reproducible. Some are if the
  /// task is `ordered`.
  bool (*reproducible)(const Task& task);
  /// Whether it also does tasks with leaves, and tasks whose output is shared.
  bool serves_exchange = false;
  /// Whether it also does tasks whose parts do not touch (Task::gaps).
  bool serves_gaps = false;
  /// Why a flat algorithm is better although this one does the task; empty when that is not so.
  std::string (*drawback)(const Task& task) = [](const Task&) { return std::string(); };
};

/// Why `algorithm` does not do `task`, all in all; empty when it does.
std::string refusal_of(const Algorithm& algorithm, const Task& task);

/// All algorithms, in the order in which they are offered.
std::span<const Algorithm* const> algorithms();
/// By name. Throws ConfigError that lists the names.
const Algorithm& algorithm_named(std::string_view name);

// One a file.
extern const Algorithm pairwise, ring, recursive_doubling, recursive_halving, binomial, double_tree,
    two_level, ring_2d, bruck;

/// What a schedule really has: for formulas that are not closed, and for the test of those that
/// are.
Steps count_steps(const Schedule& schedule);
/// The most that any rank's schedule has of each; `make` gives the schedule of a task's rank. Among
/// more than 64 ranks of those that are unlike their neighbours: the first and last of the tree's
/// blocks, and of the first nodes and the last one.
Steps count_busiest(const std::function<Schedule(const Task&)>& make, Task task);

/// "binomial does not do all_to_all": the usual refusal.
std::string does_not_do(std::string_view algorithm, const Task& task);

/// Throws CommError for a task that is wrong in itself: rank, root or parts out of range, tables
/// that do not fit together. Algorithms rely on it, and on parts being there: make_schedule does
/// both.
void check_task(const Task& task);

/// The schedule of a checked task, with allreduce's parts balanced where none are given. Throws
/// CommError with the refusal.
Schedule make_schedule(const Algorithm& algorithm, Task task);

}  // namespace tutti::comm
