#pragma once
// Chance decides the order of what has none: blocks, threads and streams.

#include <cstdint>
#include <utility>
#include <vector>

#include "tutti/base/numeric/rng.h"

namespace tutti::device {

/// Repeatable choices by a seed; seed 0 keeps everything in its natural order.
class Chance {
 public:
  explicit Chance(uint64_t seed) : natural_(seed == 0), rng_(seed, Purpose::test, 0) {}

  bool natural() const { return natural_; }
  /// Returns a number in [0, bound); 0 in natural order.
  uint32_t below(uint32_t bound) { return natural_ ? 0 : rng_.below(bound); }
  uint64_t below_many(uint64_t bound) { return natural_ ? 0 : rng_.next_u64() % bound; }

  template <class T>
  void shuffle(std::vector<T>& list) {
    if (natural_) return;
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[rng_.below(static_cast<uint32_t>(i))]);
  }

 private:
  bool natural_;
  Rng rng_;
};

}  // namespace tutti::device
