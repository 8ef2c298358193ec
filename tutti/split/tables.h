#pragma once
// Tables divided among ranks, whole or by rows. Samples stay where they are: the row numbers that
// they name go to the owners, and the looked-up vectors come back. These are two exchanges of the
// plan (ExchangeBags); differentiation adds a third one, of gradients.

#include <map>
#include <span>
#include <vector>

#include "tutti/ops/fusion/fuse.h"

namespace tutti::split {

struct TableRanks {
  int ranks = 1, rank = 0;
};

/// Rows [first, first + rows) of a table, on one rank.
struct TablePiece {
  size_t table = 0;
  int64_t first = 0, rows = 0;
  int rank = 0;
  bool operator==(const TablePiece&) const = default;
};

/// Distributes tables [rows, width] by bytes, the largest first, each to the rank that has least. A
/// table larger than a rank's share of all bytes is first cut into ranges of rows for different
/// ranks. The result is in the order of tables and rows, the same on all ranks.
std::vector<TablePiece> deal_tables(std::span<const Shape> tables, int ranks);

struct SharedTables {
  ops::Rewritten rewritten;
  std::map<const graph::Op*, int> rank_of;  ///< by lookup: the rank whose samples it is for
};

/// Rewrites a rank's forward graph, before differentiate(). Keeps the rank's own tables, looks rows
/// up for the samples of all ranks, and exchanges. `kept`: row numbers of own tables are outputs,
/// because the update reads them. A graph without tables is returned unchanged. A single rank
/// exchanges vectors with itself, too, so that its bands equal those of several. Throws ConfigError
/// for a table that is looked up in two places.
SharedTables share_tables(const graph::Graph& graph, const TableRanks& ranks, bool kept);

}  // namespace tutti::split
