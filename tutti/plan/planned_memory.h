#pragma once
// How much memory a rank holds for a plan while it trains.

#include <cstddef>
#include <string>

#include "tutti/plan/plan.h"

namespace tutti {

/// In bytes. Not among them: the program and its libraries, batches that wait to be trained on, and
/// what messages to other ranks need.
struct PlannedMemory {
  size_t variables = 0;  ///< weights, tables, statistics and what the optimizer keeps
  size_t gradients = 0;  ///< of micro-batches, and their sums
  size_t results = 0;    ///< that bands leave to later ones: activations and their gradients
  size_t scratch = 0;    ///< packed weights, and of each thread tiles, workspace and accumulators
  size_t besides = 0;    ///< MemoryLimit::besides
  size_t total() const { return variables + gradients + results + scratch + besides; }
};

/// Of a plan with options.memory.
PlannedMemory planned_memory(const Plan& plan);

/// The largest arena of results with which the plan fits options.memory; 0 where nothing does.
size_t arena_limit(const Plan& plan);

/// "memory of a rank: 612.3 MiB: variables ...", and what is computed again.
std::string memory_text(const Plan& plan);

/// Whether it needs no more than options.memory allows.
bool fits_memory(const Plan& plan);

}  // namespace tutti
