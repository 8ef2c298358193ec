#pragma once
// Cuts samples into rows: into parts, which ranks share, and each part of a large sample into
// slabs, so that threads share it and a tile fits the cache. A slab is a sample of its own for
// every kernel. What an op reads beyond its rows (Op::reach) is copied from neighbouring slabs by
// GatherRows, and from other parts it is received first.

#include <cstddef>
#include <cstdint>

#include "tutti/ops/fusion/fuse.h"
#include "tutti/split/grid.h"
#include "tutti/split/tables.h"

namespace tutti {

struct SplitSettings {
  int threads = 1;        ///< that should have work in every band
  size_t tile_bytes = 0;  ///< what a tile should fit into; 0: the backend's advice
  int64_t slabs = 0;  ///< of a sample, where its rows can be dealt out so; 0: as many as threads
                      ///< and cache ask for
  PartGrid grid = {};
  TableRanks tables =
      {};  ///< who share tables; not split_samples()'s concern, but share_tables()'s
  bool whole_outputs = true;  ///< outputs have the rows of all parts; false: what is shared is no
                              ///< output, and only the loss is
};

/// Before differentiate. Layers that no cut helps stay as they are; a graph of small samples for
/// ranks of their own comes back unchanged. Inputs keep their shapes: each part is given whole
/// samples. So do outputs, where they are wanted, but for the loss, which is the part's share: the
/// parts' add up. `of` names a value with all of its samples, or none. What follows layers that
/// need all rows is computed alike by all parts of a replica. Throws ConfigError for what cannot be
/// shared.
Rewritten split_samples(const Graph& graph, const SplitSettings& settings);

}  // namespace tutti
