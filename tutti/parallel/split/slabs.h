#pragma once
// Cuts large samples into slabs of rows, so that threads share a sample and a tile fits the cache.
// A slab is a sample of its own for every kernel; rows that an op reads beyond its slab (Op::reach)
// are copied from the neighbours' by GatherRows.

#include <cstddef>
#include <cstdint>

#include "tutti/ops/fuse.h"

namespace tutti {

struct SlabSettings {
  int threads = 1;        ///< that should have work in every band
  size_t tile_bytes = 0;  ///< what a tile should fit into; 0: the backend's advice
  int64_t slabs = 0;  ///< of a sample, where its rows can be dealt out so; 0: as many as threads and
                      ///< cache ask for
};

/// Before differentiate. Layers that no slab helps stay as they are; a graph of small samples comes
/// back unchanged. Inputs and outputs keep their shapes; `of` names a whole value or none.
Rewritten split_into_slabs(const Graph& graph, const SlabSettings& settings);

}  // namespace tutti
