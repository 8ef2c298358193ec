#pragma once
// Device code that finds the elements of nested loops in memory.

#include "device_code.h"
#include "tutti/backend/gpu/kernels/loops.h"

namespace tutti::backend {

/// Returns i / divisor, rounded down, for 0 <= i < 2^48.
TUTTI_DEVICE int64_t quotient(int64_t i, const FastDivisor& divisor) {
  const auto near = static_cast<int64_t>(static_cast<double>(i) * divisor.inverse);
  const int64_t rest = i - near * divisor.value;
  return rest < 0 ? near - 1 : rest >= divisor.value ? near + 1 : near;
}

/// The place of one element in each of K operands.
template <int K>
struct LoopPlaces {
  int64_t in[K];
};

/// Returns the places of element number `i`. The loops have a constant length and are unrolled, so
/// that nothing is indexed by a variable.
template <int K>
TUTTI_DEVICE LoopPlaces<K> loop_places(const Loops<K>& loops, int64_t i) {
  LoopPlaces<K> places{};
  for (int d = kMostLoops - 1; d > 0; --d) {
    if (d >= loops.depth) continue;
    const int64_t rest = quotient(i, loops.count[d]), index = i - rest * loops.count[d].value;
    for (int k = 0; k < K; ++k) places.in[k] += index * loops.step[k][d];
    i = rest;
  }
  for (int k = 0; k < K; ++k) places.in[k] += i * loops.step[k][0];
  return places;
}

}  // namespace tutti::backend
