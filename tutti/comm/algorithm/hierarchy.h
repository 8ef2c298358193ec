#pragma once
// Collectives of ranks in rows and columns. The vector is cut into one slice for each column,
// independently of the ranks' parts:
//   allreduce       reduce-scatter of the slices along the row, allreduce of the own one along the
//                   column, allgather along the row. Shared by two_level (row = node) and ring_2d
//                   (rows and columns of a torus)
//   reduce_scatter  the first of these, halving (halving.h) along the column, and a round in which
//                   the sums go to their owners, in any row and column
//   allgather       the same in reverse
// The order of the sum is the tree's where each row is a node of it.

#include <functional>

#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {

/// A rank's row and column, and the ranks of that row and of that column, in their order.
struct GridPlace {
  int row = 0, column = 0;
  std::vector<int> row_ranks, column_ranks;
};
/// Puts rank r in row r / columns. `columns` divides the number of ranks.
GridPlace place_in_grid(const Task& task, int columns);

Schedule allreduce_in_rows(const Task& task, const GridPlace& at, std::string_view name,
                           const Algorithm& along_row, const Algorithm& along_column);
/// Returns the rank in a row and a column.
using RankAt = std::function<int(int row, int column)>;
Schedule reduce_scatter_in_rows(const Task& task, const GridPlace& at, std::string_view name,
                                const Algorithm& along_row, RankAt rank_at);
Schedule allgather_in_rows(const Task& task, const GridPlace& at, std::string_view name,
                           const Algorithm& along_row, RankAt rank_at);

/// Returns the costs. All rows have `columns` ranks, and all ranks parts of one size.
Steps steps_in_rows(const Task& task, int columns, const Algorithm& along_row,
                    const Algorithm& along_column);

}  // namespace tutti::comm
