#pragma once
// The algorithms of comm/: each is a file here with its steps-and-bytes formula, and an entry in
// algorithms().

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

/// The cost of an algorithm for the busiest rank, by its formula. In elements, not bytes. Exact
/// where ranks divide the count; otherwise rounded up.
struct Steps {
  double rounds = 0;   ///< messages that follow each other
  double moved = 0;    ///< elements that a rank sends, or receives if that is more
  double reduced = 0;  ///< additions that a rank does, at most
};

struct Algorithm {
  std::string_view name;
  /// Says why it does not do this kind among these ranks; empty when it does. Call refusal_of().
  std::string (*refusal)(const Task& task);
  Schedule (*schedule)(const Task& task);
  Steps (*steps)(const Task& task);
  /// Says whether the sum is taken in the order of comm/schedule/tree.h over the rank index: all
  /// such algorithms give the same bits. Moving elements is always reproducible. Some algorithms
  /// take this order only if the task is `ordered`.
  bool (*reproducible)(const Task& task);
  /// Whether it also does tasks with leaves, and tasks whose output is shared.
  bool serves_exchange = false;
  /// Whether it also does tasks with gaps between the parts (Task::gaps).
  bool serves_gaps = false;
  /// Says why a flat algorithm is better although this one does the task; empty when none is.
  std::string (*drawback)(const Task& task) = [](const Task&) { return std::string(); };
};

/// Returns why `algorithm` does not do `task`, for whatever reason; empty when it does.
std::string refusal_of(const Algorithm& algorithm, const Task& task);

/// Returns all algorithms, in the order in which they are offered.
std::span<const Algorithm* const> algorithms();
/// Returns the algorithm of that name. Throws a ConfigError that lists the names.
const Algorithm& algorithm_named(std::string_view name);

// Each has its own file.
extern const Algorithm pairwise, ring, recursive_doubling, recursive_halving, binomial, double_tree,
    two_level, ring_2d, bruck;

/// Counts the costs of a schedule: for algorithms without a closed formula, and to test formulas.
Steps count_steps(const Schedule& schedule);
/// Returns the largest of each cost over the ranks' schedules; `make` gives the schedule of a
/// task's rank. Among more than 64 ranks it counts only those that differ from their neighbours:
/// the first and last ranks of the tree's blocks, and the ranks of the first and last nodes.
Steps count_busiest(const std::function<Schedule(const Task&)>& make, Task task);

/// Returns the usual refusal: "binomial does not do all_to_all".
std::string does_not_do(std::string_view algorithm, const Task& task);

/// Throws CommError for a task that is wrong in itself: rank, root or parts out of range, or tables
/// that do not fit. Algorithms rely on this check and on parts: make_schedule ensures both.
void check_task(const Task& task);

/// Returns the schedule of a checked task, with balanced parts for an allreduce that has none.
/// Throws CommError with the refusal.
Schedule make_schedule(const Algorithm& algorithm, Task task);

}  // namespace tutti::comm
