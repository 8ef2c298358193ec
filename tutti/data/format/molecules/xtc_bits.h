#pragma once
// Unpacks the integers of an XTC frame: coordinates times a precision, rounded, as a stream of
// bits.
//
// An atom is either *large*, stored as its three integers minus the frame's least ones, or *small*,
// stored as its distance from the atom before it. Three integers below s0, s1, s2 form one number,
// (i0 * s1 + i1) * s2 + i2, with as many bits as s0 * s1 * s2 has; if an s is 2^24 or more, they
// are three numbers, with as many bits as each s has. Small integers have one s, an entry of a
// table that grows by 2^(1/3): the number has as many bits as the entry's index in the table, and
// the distance is stored plus half the entry.
//
//   large atom, a bit
//   if the bit is 1: 5 bits r, which say that r / 3 small atoms follow here and after each large
//   atom from now on, and that the table index then changes by r % 3 - 1
//   r / 3 small atoms; the first of them precedes the large one in the molecule (so the oxygen of
//   water is stored second, close to both hydrogens)
//
// A number of more than 8 bits is stored as its bytes, the lowest first.

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tutti::data {

/// The values before the bits.
struct XtcPacking {
  std::array<int32_t, 3> least{}, greatest{};
  int32_t small = 0;  ///< first index in the table
};

/// Returns the size of small integers, by their index in the table; indices from kXtcFirstSmall on
/// are used.
inline constexpr int kXtcFirstSmall = 9, kXtcSmallSizes = 73;
int32_t xtc_small_size(int place);
/// Returns the bits of a number that three integers below `sizes` form.
int xtc_bits_of(const std::array<uint32_t, 3>& sizes);

/// Returns the fault of the packing; empty: none.
std::string check_xtc_packing(const XtcPacking& packing);
/// Unpacks x y z of out.size() / 3 atoms into `out`; returns the fault of the bytes, or an empty
/// string.
std::string unpack_xtc(const XtcPacking& packing, std::span<const uint8_t> bytes,
                       std::span<int32_t> out);

}  // namespace tutti::data
