#pragma once
// IEEE 754 binary16, for gradients on the wire: 1 sign, 5 exponent, 10 fraction bits; largest
// 65504, smallest 2^-24. It has no arithmetic. Both conversions are without branches, so a loop
// over them becomes vector code.

#include <bit>
#include <cstdint>

namespace tutti::comm {

struct fp16 {
  uint16_t bits = 0;
  fp16() = default;

  /// Rounds to nearest, ties to even, subnormal results included; from 65520 on the result is
  /// infinite. A NaN keeps its sign and the upper bits of its payload and becomes a quiet one.
  explicit fp16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = u & 0x7FFFFFFFu;
    // Half's exponent bias is 15, float's 127: 112 less. The carry of the rounding may go into the
    // exponent, up to infinity.
    const uint32_t normal = (magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    // Below 2^-14 the result is a multiple of 2^-24, which is the distance of floats between 0.5
    // and 1: the addition rounds.
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    const uint32_t quiet_nan = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x47800000u ? 0x7C00u : half;
    half = magnitude > 0x7F800000u ? quiet_nan : half;
    bits = static_cast<uint16_t>(half | ((u >> 16) & 0x8000u));
  }

  /// Converts exactly.
  explicit operator float() const {
    const uint32_t magnitude = bits & 0x7FFFu;
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
    uint32_t u = (magnitude << 13) + (112u << 23);
    u = magnitude < 0x400u ? subnormal : u;
    u = magnitude >= 0x7C00u ? (magnitude << 13) + (224u << 23)
                             : u;  // the largest exponent stays the largest
    return std::bit_cast<float>(u | ((bits & 0x8000u) << 16));
  }
};

}  // namespace tutti::comm
