#pragma once
// Allreduce over ranks in rows and columns: reduce-scatter along the row, allreduce of the own part
// along the column, allgather along the row. Shared by two_level (row = node) and ring_2d (rows and
// columns of a torus). The order of the sum is the tree's where each row is a node of it.

#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {

/// Where a rank stands, and who else is in its row and in its column, in their order.
struct GridPlace {
  int row = 0, column = 0;
  std::vector<int> row_ranks, column_ranks;
};
/// Rank r in row r / columns. `columns` divides the ranks.
GridPlace place_in_grid(const Task& task, int columns);

Schedule allreduce_in_rows(const Task& task, const GridPlace& at, std::string_view name,
                           const Algorithm& along_row, const Algorithm& along_column);
/// All rows have `columns` ranks.
Steps steps_in_rows(const Task& task, int columns, const Algorithm& along_row,
                    const Algorithm& along_column);

}  // namespace tutti::comm
