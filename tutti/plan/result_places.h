#pragma once
// Where results lie.

#include <utility>
#include <vector>

#include "tutti/plan/bands.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/plan.h"

namespace tutti {

struct ResultPlaces {
  std::vector<std::pair<Value, Place>> places;
  size_t arena_bytes = 0;         ///< of what is stored
  size_t tile_scratch_bytes = 0;  ///< of each thread
};

/// Results that never leave their band lie in the thread's tile scratch; all others in the arena.
/// An output may take over the memory of an input that nobody reads afterwards, nor another tile or
/// an exchange at that time; what a gradient takes over (taken_over_by) lies where the gradient
/// does. What stays in its band and is made again without such an output keeps its tile. Reads
/// graph, descs, the places of variables and the tiles of the bands. What is made again lies where
/// it lay before, and lends its memory between.
ResultPlaces place_results(const Plan& plan, const Schedule& schedule);

/// The memory of what place_results() stores, by bands of the schedule. Reads graph, descs and the
/// places of variables.
std::vector<Lifetime> stored_lifetimes(const Plan& plan, const Schedule& schedule);

/// What bands make and place_results() stores.
std::vector<Value> stored_results(const Graph& graph, const Schedule& schedule);

}  // namespace tutti
