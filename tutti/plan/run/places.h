#pragma once
// Finds the memory of a plan's operands.

#include <algorithm>
#include <cstddef>

#include "tutti/base/error.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Returns the address of a place for the tile that begins with a sample. `bases`: by Base; `tile`:
/// the memory of kTile.
inline void* place_address(std::byte* const* bases, std::byte* tile, const Place& place,
                           int64_t first_sample) {
  if (place.base == kTile) return tile + place.offset;
  return bases[place.base] + place.offset + place.stride * static_cast<size_t>(first_sample);
}

/// Returns the index in Plan::inputs.
inline size_t index_of_input(const Plan& plan, graph::Value input) {
  const auto at = std::ranges::find(plan.inputs, input);
  CHECK(at != plan.inputs.end(), "value {} is not an input", input.id);
  return static_cast<size_t>(at - plan.inputs.begin());
}

/// Whether a value with that place may be read after a run: it is an input, or lies in the arena.
inline bool is_stored(const Plan& plan, const Place& place) {
  return place.base == kArena || (place.base >= kFirstInput && place.base < plan.base_of_sum(0));
}

}  // namespace tutti::plan
