#pragma once
// Allreduce over ranks in rows and columns: reduce-scatter along the row, allreduce of the own part
// along the column, allgather along the row. Shared by two_level (row = node) and grid (rows and
// columns of a torus).

#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {

/// Rank r stands in row r / columns. `columns` divides the ranks.
Schedule allreduce_in_rows(const Task& task, int columns, std::string_view name,
                           const Algorithm& along_row, const Algorithm& along_column);
Steps steps_in_rows(const Task& task, int columns, const Algorithm& along_row,
                    const Algorithm& along_column);

/// The tree over all ranks consists of the trees over the rows where a row is a power of two.
bool rows_follow_tree(const Task& task, int columns);

}  // namespace tutti::comm
