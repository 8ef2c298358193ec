#pragma once
// Memory planning: offsets in one arena for blocks whose lifetimes are known.

#include <cstddef>
#include <span>
#include <vector>

namespace tutti {

/// Bytes between the beginnings of blocks: a cache line, and the widest vector register.
constexpr size_t kAlignment = 64;
constexpr size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// A block of memory needed from moment `first` to moment `last`, both included.
struct Lifetime {
  size_t bytes = 0;
  int first = 0, last = 0;
};

struct ArenaPlan {
  std::vector<size_t> offsets;  ///< per block, multiples of kAlignment
  size_t bytes = 0;             ///< of the whole arena
};

/// Places blocks so that none that live at the same time overlap: largest first, each at the lowest
/// free offset
/// ("greedy by size", Pisarchyk and Lee 2020, section 5.2), which for training graphs is within a
/// few percent of the bound.
ArenaPlan plan_arena(std::span<const Lifetime> blocks);

/// The largest sum of blocks alive at one moment: no arena can be smaller.
size_t arena_lower_bound(std::span<const Lifetime> blocks);

}  // namespace tutti
