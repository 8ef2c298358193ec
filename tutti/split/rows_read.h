#pragma once
// Finds which rows of an input a part of a sample reads.

#include <optional>

#include "tutti/graph/graph.h"

namespace tutti::split {

struct RowsRead {
  int dim = 0;  ///< dimension of the input
  graph::Rows rows;
};

/// Returns the rows of one dimension that all readers of `input` together read; nothing if a reader
/// takes all rows, or rows of another dimension.
std::optional<RowsRead> rows_read(const graph::Graph& graph, graph::Value input);

}  // namespace tutti::split
