#pragma once
// The batch and its tiles: how many samples a pass has, and how many of them go through a band at a
// time.

#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti {

/// Samples of one run. Throws ConfigError if the graph's inputs do not agree on it, or if a value
/// has samples that are no multiple of it (slabs are several to a sample).
int64_t batch_of(const Graph& graph);

/// Of a batched value.
size_t bytes_of_sample(const TensorDesc& desc);

/// The bands of the plan, cut and without steps: one tile's operands fit into options.tile_bytes,
/// or, where that is 0, into `advised` bytes or the band's weights, whichever are more. Reads
/// graph, options and descs.
std::vector<PlanBand> cut_into_tiles(const Plan& plan, const Schedule& schedule, size_t advised);

}  // namespace tutti
