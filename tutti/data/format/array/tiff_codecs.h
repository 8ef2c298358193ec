#pragma once
// How TIFF packs the bytes of a strip or tile (TIFF 6.0, sections 9, 13 and 14).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Undoes LZW, most significant bit first. All of `out` must be filled, and what is left over is
/// passed over. BadFile that begins with `what`.
void unpack_lzw(std::span<const uint8_t> packed, std::span<uint8_t> out, const std::string& what);
/// A code of 12 bits stands for less than 4096 bytes.
inline constexpr int64_t kMostLzwGain = 2731;

/// Undoes PackBits, likewise.
void unpack_packbits(std::span<const uint8_t> packed, std::span<uint8_t> out,
                     const std::string& what);
inline constexpr int64_t kMostPackbitsGain = 64;

/// The most that `bytes` of a file can hold behind these filters.
int64_t most_unpacked(int64_t bytes, const std::vector<ChunkTable::Filter>& filters);

/// What a row holds: `samples` interleaved values of `element` bytes at each place.
struct TiffRow {
  size_t bytes = 0, element = 1, samples = 1;
  bool swapped = false;  ///< big endian
};

/// Predictor 2: each value is what is to be added to the one before of its sample.
void undo_differences(std::span<uint8_t> bytes, const TiffRow& row);
/// Predictor 3, of floats: the rows' first bytes, second bytes ..., most significant first, each
/// byte to be added to the one before of its sample.
void undo_float_differences(std::span<uint8_t> bytes, const TiffRow& row);

}  // namespace tutti::data
