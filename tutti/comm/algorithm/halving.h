#pragma once
// The parts of vector halving and doubling, as recursive_halving.cpp describes it: the way up, the
// way down, and what lies between: who holds what, and whose it is.

#include <functional>
#include <vector>

#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {

/// The way up among all ranks of `task`, from the input. Afterwards the first ranks hold the sum's
/// slices as Holders says, in `sum`, which has a place for the whole vector.
void add_up(ScheduleBuilder& builder, const Task& task, Block sum);
/// The way down: what the first ranks hold of the output, to all.
void share_down(ScheduleBuilder& builder, const Task& task);

/// Who holds what after the way up and before the way down. The vector is cut into columns, each
/// with as many ranks; the first 2^floor(log2 ranks) of a column have equal slices of it.
struct Holders {
  std::vector<Slice> columns;  ///< without gaps
  int ranks = 0;               ///< of a column
  std::function<int(size_t column, int i)> rank;

  /// What the i-th rank of a column holds; nothing for those that have given everything away.
  Slice held(size_t column, int i) const;
};

/// Adds a round to `builder`: finishes the sum of `have`, which lies in `sum`, and gives each rank
/// its part. A part lies in one slice or in a few. `have` is what this rank holds.
void deal_out(ScheduleBuilder& builder, const Task& task, const Holders& holders, Slice have,
              Block sum);
/// The same way back: each rank's part, its input, to those who hold it in the output.
void deal_in(ScheduleBuilder& builder, const Task& task, const Holders& holders, Slice have);

}  // namespace tutti::comm
