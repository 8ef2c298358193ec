#pragma once
// Transposes blocks of 16 x 16 numbers of 32 bits.

#include <utility>

#include "tutti/backend/cpu/simd/simd_vector.h"

namespace tutti::backend::simd {

/// A row of a block as one vector, because lanes are shuffled across all sixteen.
using Row = float __attribute__((vector_size(kLanes * sizeof(float))));

/// Return the lane of (a, b) = lanes 0-15, 16-31 that a lane of an exchange takes: for the first
/// result, and for the second.
constexpr int first_lane(uint32_t s, uint32_t lane) {
  return static_cast<int>(lane & s ? kLanes + (lane ^ s) : lane);
}
constexpr int second_lane(uint32_t s, uint32_t lane) {
  return static_cast<int>(lane & s ? kLanes + lane : lane ^ s);
}

/// Exchanges bit s of the row number with bit s of the lane number, for all rows.
template <uint32_t s, uint32_t... lanes>
void exchange(Row (&rows)[kLanes], std::integer_sequence<uint32_t, lanes...>) {
#pragma GCC unroll 16
  for (uint32_t i = 0; i < kLanes; ++i) {
    if (i & s) continue;
    const Row a = rows[i], b = rows[i | s];
    rows[i] = __builtin_shufflevector(a, b, first_lane(s, lanes)...);
    rows[i | s] = __builtin_shufflevector(a, b, second_lane(s, lanes)...);
  }
}

inline void transpose(Row (&rows)[kLanes]) {
  constexpr std::make_integer_sequence<uint32_t, kLanes> kAllLanes;
  exchange<1>(rows, kAllLanes);
  exchange<2>(rows, kAllLanes);
  exchange<4>(rows, kAllLanes);
  exchange<8>(rows, kAllLanes);
}

}  // namespace tutti::backend::simd
