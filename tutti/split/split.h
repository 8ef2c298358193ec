#pragma once
// Cuts samples into rows: into parts, which ranks share, and each part of a large sample into
// slabs, so that threads share it and a tile fits the cache. Every kernel treats a slab as a
// sample of its own. Rows that an op reads beyond its own (Op::reach) are copied from neighbouring
// slabs by GatherRows; those of other parts are received first.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tutti/ops/fusion/fuse.h"
#include "tutti/split/grid.h"
#include "tutti/split/tables.h"

namespace tutti::split {

struct SplitSettings {
  int threads = 1;        ///< threads that should have work in every band
  size_t tile_bytes = 0;  ///< size that a tile should fit into; 0: the backend's advice
  int64_t slabs = 0;      ///< slabs of a sample, where its rows can be divided so; 0: as many as
                          ///< threads and cache ask for
  PartGrid grid = {};
  TableRanks tables =
      {};  ///< ranks that share tables; used by share_tables(), not by split_samples()
  bool whole_outputs = true;  ///< outputs have the rows of all parts; false: shared values are no
                              ///< outputs, except the loss
};

/// Rewrites the forward graph; call it before differentiate(). Layers that no cut helps stay
/// unchanged, and so does a graph of small samples that ranks do not share. Inputs keep their
/// shapes, because each part is given whole samples. Outputs keep theirs, too, if they are wanted,
/// except the loss: it is the part's share, and the shares of all parts add up. `of` names a value
/// with all of its samples, or none. Layers behind one that needs all rows are computed identically
/// by all parts of a replica. Throws ConfigError if something cannot be shared.
ops::Rewritten split_samples(const graph::Graph& graph, const SplitSettings& settings);

/// Adds a value that the caller of a forward graph binds to `graph`, a parameter or statistic with
/// this shape. Returns no value for the result of a node, nor for a table, of which a rank has
/// rows.
graph::Value copy_bound_value(graph::Graph& graph, const graph::ValueInfo& info,
                              const Shape& shape);

struct RowsRead {
  int dim = 0;  ///< dimension of the input
  graph::Rows rows;
};
/// Returns the rows of one dimension that all readers of `input` together read; nothing if a reader
/// takes all rows, or rows of another dimension.
std::optional<RowsRead> rows_read(const graph::Graph& graph, graph::Value input);

}  // namespace tutti::split
