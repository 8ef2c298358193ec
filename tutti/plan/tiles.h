#pragma once
// Decides how many samples a pass has, and how many of them go through a band at a time.

#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Returns the samples of one run. Throws ConfigError if the graph's inputs do not agree on it, or
/// if a value has a number of samples that is no multiple of it (slabs are several to a sample).
int64_t batch_of(const graph::Graph& graph);

/// Returns the bytes of one sample of a batched value.
size_t bytes_of_sample(const TensorDesc& desc);

/// Returns the bands of the plan with their tiles and without steps: one tile's operands fit into
/// options.tile_bytes or, if that is 0, into `advised` bytes or the size of the band's weights,
/// whichever is more. Reads graph, options and descs.
std::vector<PlanBand> cut_into_tiles(const Plan& plan, const Schedule& schedule, size_t advised);

}  // namespace tutti::plan
