#pragma once
// Footprint: the memory of a set of blocks, for asking whether another block touches it. A round
// among n ranks has n blocks and more, so comparing each with each would take n^2 steps.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace tutti::comm {

/// Bytes at an address; none where the address is null.
struct Extents {
  const std::byte* data = nullptr;
  size_t bytes = 0;
};

class Footprint {
 public:
  void add(Extents block) {
    if (block.data == nullptr || block.bytes == 0) return;
    blocks_.emplace(begin_of(block), block.bytes);
    longest_ = std::max(longest_, block.bytes);
  }
  void clear() {
    blocks_.clear();
    longest_ = 0;
  }

  bool touches(Extents block) const {
    return any(block, [](uintptr_t, size_t) { return true; });
  }
  /// Returns whether `block` touches a block that is not identical to it.
  bool touches_otherwise(Extents block) const {
    return any(block, [&](uintptr_t begin, size_t bytes) {
      return begin != begin_of(block) || bytes != block.bytes;
    });
  }
  /// Returns whether `block` touches a block that begins elsewhere.
  bool crosses(Extents block) const {
    return any(block, [&](uintptr_t begin, size_t) { return begin != begin_of(block); });
  }

 private:
  static uintptr_t begin_of(Extents block) { return reinterpret_cast<uintptr_t>(block.data); }

  // Returns whether test(begin, bytes) holds for a block that `block` touches.
  template <class Test>
  bool any(Extents block, Test test) const {
    if (block.data == nullptr || block.bytes == 0) return false;
    const uintptr_t begin = begin_of(block), end = begin + block.bytes;
    const uintptr_t first = begin > longest_ ? begin - longest_ : 0;
    for (auto at = blocks_.lower_bound({first, 0}); at != blocks_.end() && at->first < end; ++at)
      if (at->first + at->second > begin && test(at->first, at->second)) return true;
    return false;
  }

  std::set<std::pair<uintptr_t, size_t>> blocks_;  // begin, bytes
  size_t longest_ = 0;
};

}  // namespace tutti::comm
