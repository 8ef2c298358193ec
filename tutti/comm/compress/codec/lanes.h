#pragma once
// Loops in forms that compilers vectorise.
//
// Sums in a fixed number of lanes: lane l adds the elements l, l + 16, l + 32, ..., and the lanes
// are added in halves at the end. The order is a function of the length alone, and a compiler may
// keep the lanes in vector registers, which it may not do with one running sum.

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::comm {

/// Returns term(0) + ... + term(n-1), in Value.
template <class Value, class Term>
Value sum_lanes(size_t n, Term term) {
  constexpr size_t kLanes = 16;
  Value lane[kLanes] = {};
  const size_t whole = n - n % kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t l = 0; l < kLanes; ++l) lane[l] += term(i + l);
  for (size_t i = whole; i < n; ++i) lane[i - whole] += term(i);
  for (size_t width = kLanes / 2; width > 0; width /= 2)
    for (size_t l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

/// Returns a[0] b[0] + ... + a[n-1] b[n-1] in double, where products neither overflow nor round.
inline double dot(const float* a, const float* b, size_t n) {
  return sum_lanes<double>(
      n, [=](size_t i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
}

/// Returns the sum of squares, which is not finite exactly when an element is not.
inline double sum_of_squares(std::span<const float> x) { return dot(x.data(), x.data(), x.size()); }

/// Packs eight bytes of 0 or 1, the first lowest, into the bits of one byte. Comparing whole
/// vectors into bytes is faster than bit by bit.
inline uint32_t pack_flags(const uint8_t* flags) {
  uint64_t eight = 0;
  for (int i = 0; i < 8; ++i) eight |= uint64_t{flags[i]} << (8 * i);
  return static_cast<uint32_t>(eight * 0x0102040810204080u >>
                               56);  // the product has flag i at bit 56 + i
}

}  // namespace tutti::comm
