#pragma once
// Unpacks the bytes of a TIFF strip or tile (TIFF 6.0, sections 9, 13 and 14).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Undoes LZW, most significant bit first. It must fill all of `out`; bytes left over are ignored.
/// BadFile that begins with `what`.
void unpack_lzw(std::span<const uint8_t> packed, std::span<uint8_t> out, const std::string& what);
/// A code of 12 bits yields less than 4096 bytes.
inline constexpr int64_t kMostLzwGain = 2731;

/// Undoes PackBits, likewise.
void unpack_packbits(std::span<const uint8_t> packed, std::span<uint8_t> out,
                     const std::string& what);
inline constexpr int64_t kMostPackbitsGain = 64;

/// Returns the most that `bytes` of a file can hold with these filters.
int64_t most_unpacked(int64_t bytes, const std::vector<ChunkTable::Filter>& filters);

/// The layout of a row: `samples` interleaved values of `element` bytes per pixel.
struct TiffRow {
  size_t bytes = 0, element = 1, samples = 1;
  bool swapped = false;  ///< big endian
};

/// Undoes predictor 2: each value is a difference to the previous value of its sample.
void undo_differences(std::span<uint8_t> bytes, const TiffRow& row);
/// Undoes predictor 3, for floats: a row has all first bytes, second bytes ..., most significant
/// first, each as a difference to the previous byte of its sample.
void undo_float_differences(std::span<uint8_t> bytes, const TiffRow& row);

}  // namespace tutti::data
