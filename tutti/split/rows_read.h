#pragma once
// Which rows of an input a part of a sample reads.

#include <optional>

#include "tutti/graph/graph.h"

namespace tutti {

struct RowsRead {
  int dim = 0;  ///< of the input
  Rows rows;
};

/// The rows that all readers of `input` together take of one dimension; none where a reader takes
/// all of them, or another dimension's.
std::optional<RowsRead> rows_read(const Graph& graph, Value input);

}  // namespace tutti
