#pragma once
// The integers of an XTC frame: coordinates times a precision, rounded, as a stream of bits.
//
// An atom is either *large*, its three integers above the frame's least ones, or *small*, its
// distance from the atom before it. Three integers below s0, s1, s2 are one number,
// (i0 * s1 + i1) * s2 + i2, of as many bits as s0 * s1 * s2 has; where an s is 2^24 or more, three
// numbers of as many bits as each s has. Small integers have one s, which is an entry of a table
// that grows by 2^(1/3): the number is as many bits as the entry's place in the table, and what is
// stored is the distance plus half the entry.
//
//   large atom, a bit
//   if the bit is 1: 5 bits r, which say that r / 3 small atoms follow here and after each large
//   atom from now on, and that the place in the table is then r % 3 - 1 further
//   r / 3 small atoms; the first of them stands before the large one in the molecule (of water,
//   where the oxygen, stored second, is close to both hydrogens)
//
// The bits of a number of more than 8 bits are its bytes, the lowest first.

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tutti::data {

/// What stands before the bits.
struct XtcPacking {
  std::array<int32_t, 3> least{}, greatest{};
  int32_t small = 0;  ///< the first place in the table
};

/// The sizes of small integers, by their place in the table; the places from kXtcFirstSmall on are
/// used.
inline constexpr int kXtcFirstSmall = 9, kXtcSmallSizes = 73;
int32_t xtc_small_size(int place);
/// Bits of a number that three integers below `sizes` make.
int xtc_bits_of(const std::array<uint32_t, 3>& sizes);

/// What is wrong with the packing, or with its bytes; empty: nothing.
std::string check_xtc_packing(const XtcPacking& packing);
/// x y z of each atom, out.size() / 3 of them, into `out`.
std::string unpack_xtc(const XtcPacking& packing, std::span<const uint8_t> bytes,
                       std::span<int32_t> out);

}  // namespace tutti::data
