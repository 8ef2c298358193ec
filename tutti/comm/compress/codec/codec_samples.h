#pragma once
// Values for the tests of codecs.

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

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace tutti::comm
