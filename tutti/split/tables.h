#pragma once
// Tables of which each rank has some, whole or by rows. Samples stay where they are: the numbers of
// the rows that they name go to the owners, and the vectors that those look up come back. Two
// exchanges of the plan (ExchangeBags), and by differentiation a third one, of gradients.

#include <map>
#include <span>
#include <vector>

#include "tutti/ops/fusion/fuse.h"

namespace tutti {

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

/// Deals tables [rows, width] out by bytes, the largest first, each to the rank that has least; a
/// table larger than a rank's share of all bytes is cut into runs of rows first, for ranks of their
/// own. In the order of tables and rows, the same on all ranks.
std::vector<TablePiece> deal_tables(std::span<const Shape> tables, int ranks);

struct SharedTables {
  Rewritten rewritten;
  std::map<const Op*, int> rank_of;  ///< of a lookup: the rank whose samples it is for
};

/// Of a forward graph that is one rank's, before differentiate. Keeps the rank's own tables, looks
/// rows up for the samples of all ranks, and exchanges. `kept`: the numbers of rows of own tables
/// are outputs, because the update reads them. A graph without tables comes back as it is. One
/// rank, too, exchanges vectors with itself, so that its bands are those of several. ConfigError
/// for a table that is looked up in two places.
SharedTables share_tables(const Graph& graph, const TableRanks& ranks, bool kept);

}  // namespace tutti
