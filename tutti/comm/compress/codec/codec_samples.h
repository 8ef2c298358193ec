#pragma once
// Values for the tests of codecs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "tutti/base/numeric/rng.h"

namespace tutti::comm {

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Returns normal numbers times `deviation`; each stream has its own.
inline Floats random_values(size_t n, uint64_t stream, float deviation = 1) {
  Rng rng(7, Purpose::test, stream);
  Floats x(n);
  for (float& value : x) value = rng.normal() * deviation;
  return x;
}

inline bool all_finite(const Floats& x) {
  return std::ranges::all_of(x, [](float value) { return std::isfinite(value); });
}

inline double squares_of(const Floats& x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace tutti::comm
