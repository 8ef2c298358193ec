#pragma once
// Memory planning: finds offsets in one arena for blocks whose lifetimes are known.

#include <cstddef>
#include <span>
#include <vector>

namespace tutti::plan {

/// Alignment of blocks, in bytes: a cache line, and the widest vector register.
constexpr size_t kAlignment = 64;
constexpr size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// A period from `first` to `last`, both included.
struct Moments {
  int first = 0, last = 0;
  bool operator==(const Moments&) const = default;
};

/// A block of memory, and when it is needed.
struct Lifetime {
  size_t bytes = 0;
  std::vector<Moments> when;  ///< ordered, and apart from each other
  /// Whether both blocks are needed at some moment.
  bool meets(const Lifetime& other) const;
};

struct ArenaPlan {
  std::vector<size_t> offsets;  ///< per block, multiples of kAlignment
  size_t bytes = 0;             ///< size of the arena
};

/// Places blocks so that none that live at the same time overlap: largest first, each at the lowest
/// free offset ("greedy by size", Pisarchyk and Lee 2020, section 5.2), which for training graphs
/// is within a few percent of the bound.
ArenaPlan plan_arena(std::span<const Lifetime> blocks);

/// The moment at which the blocks together need most; no arena can be smaller than that.
struct ArenaPeak {
  int moment = 0;
  size_t bytes = 0;
};
ArenaPeak arena_peak(std::span<const Lifetime> blocks);
/// Returns what the blocks need together at one moment.
size_t bytes_at(std::span<const Lifetime> blocks, int moment);

}  // namespace tutti::plan
