#pragma once
// The parts of vector halving and doubling, which recursive_halving.cpp describes: the way up, the
// way down, and between them which rank holds which slice.

#include <functional>
#include <vector>

#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {

/// Goes the way up among all ranks of `task`: adds up their inputs. Afterwards the first ranks hold
/// the sum's slices as Holders says, in `sum`, which has a place for the whole vector.
void add_up(ScheduleBuilder& builder, const Task& task, Block sum);
/// Goes the way down: sends the slices of the output that the first ranks hold to all ranks.
void share_down(ScheduleBuilder& builder, const Task& task);

/// Says which rank holds which slice after the way up and before the way down. The vector is cut
/// into columns of `ranks` ranks each, of which the first 2^floor(log2 ranks) have equal slices.
struct Holders {
  std::vector<Slice> columns;  ///< without gaps
  int ranks = 0;               ///< ranks in each column
  std::function<int(size_t column, int i)> rank;

  /// Returns the slice of the i-th rank of a column; empty for ranks that gave everything away.
  Slice held(size_t column, int i) const;
};

/// Adds a round to `builder`: finishes the sum of `have`, which lies in `sum`, and gives each rank
/// its part. A part lies in one slice or in a few. `have` is the slice that this rank holds.
void deal_out(ScheduleBuilder& builder, const Task& task, const Holders& holders, Slice have,
              Block sum);
/// Adds the reverse round: sends each rank's part, its input, to the holders of that slice.
void deal_in(ScheduleBuilder& builder, const Task& task, const Holders& holders, Slice have);

}  // namespace tutti::comm
