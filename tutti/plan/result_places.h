#pragma once
// Decides where results lie.

#include <utility>
#include <vector>

#include "tutti/plan/bands.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

struct ResultPlaces {
  std::vector<std::pair<graph::Value, Place>> places;
  size_t arena_bytes = 0;         ///< bytes of stored results
  size_t tile_scratch_bytes = 0;  ///< bytes per thread
};

/// Results that never leave their band lie in the thread's tile scratch, all others in the arena.
/// An output may take over the memory of an input that is not read afterwards, nor by another tile
/// or an exchange at that time. A result that a gradient takes over (taken_over_by) lies where the
/// gradient does. A result that stays in its band and is made again without such an output keeps
/// its tile. Recomputed results lie where they lay before, and lend out their memory in between.
/// Reads graph, descs, the places of variables and the tiles of the bands.
ResultPlaces place_results(const Plan& plan, const Schedule& schedule);

/// Returns the memory of the results that place_results() stores, by bands of the schedule. Reads
/// graph, descs and the places of variables.
std::vector<Lifetime> stored_lifetimes(const Plan& plan, const Schedule& schedule);

/// Returns the results of bands that place_results() stores.
std::vector<graph::Value> stored_results(const graph::Graph& graph, const Schedule& schedule);

}  // namespace tutti::plan
