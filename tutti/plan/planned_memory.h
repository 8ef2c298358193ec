#pragma once
// Computes how much memory a rank holds for a plan while it trains.

#include <cstddef>
#include <string>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Memory of a rank, in bytes; on a device, that of the device, and all of it. Otherwise it does
/// not contain the program and its libraries, batches that wait to be trained on, or what messages
/// to other ranks need.
struct PlannedMemory {
  size_t variables = 0;  ///< weights, tables, statistics and optimizer state, and copies of weights
  size_t gradients = 0;  ///< gradients of micro-batches, their sums, and what compression keeps
  size_t results = 0;    ///< activations and their gradients that bands leave to later ones
  size_t scratch = 0;    ///< packed weights, and the tiles, workspace and accumulators of each
                         ///< thread; on a device also the inputs and numbers of passes
  size_t besides = 0;    ///< MemoryLimit::besides
  size_t copies = 0;     ///< MemoryLimit::copies
  size_t total() const { return variables + gradients + results + scratch + besides + copies; }
};

/// Returns the memory of a plan, with the numbers of copies in options.memory.
PlannedMemory planned_memory(const Plan& plan);

/// Returns the largest arena of results, in bytes, with which the plan fits options.memory; 0 if no
/// arena does.
size_t arena_limit(const Plan& plan);

/// Returns text like "memory of a rank: 612.3 MiB: variables ...", with the results that are
/// computed again.
std::string memory_text(const Plan& plan);

/// Whether the plan needs no more memory than options.memory allows.
bool fits_memory(const Plan& plan);

}  // namespace tutti::plan
