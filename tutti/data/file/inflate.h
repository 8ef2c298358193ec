#pragma once
// Inflates bytes in memory or in a part of a file to a size that is known beforehand, and computes
// the CRC-32 of zip files with zlib.

#include <cstdint>
#include <span>
#include <string>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// Deflate gains at most this factor.
inline constexpr int64_t kMostInflation = 1032;

/// How a deflate stream is wrapped.
enum class Deflated { bare /* zip */, zlib /* HDF5 */ };

/// Inflates the `stored` bytes at `first` of `file` into `out`, which they must fill exactly.
/// Throws BadFile whose message begins with `what` (file and part).
void inflate_part(const FileBytes& file, int64_t first, int64_t stored, Deflated wrapping,
                  std::span<uint8_t> out, const std::string& what);

/// Inflates from the start until `out` is full or the stream ends; returns the bytes written.
size_t inflate_start(const FileBytes& file, int64_t first, int64_t stored, Deflated wrapping,
                     std::span<uint8_t> out, const std::string& what);

/// Does the same as inflate_part() with bytes in memory.
void inflate_bytes(std::span<const uint8_t> stored, Deflated wrapping, std::span<uint8_t> out,
                   const std::string& what);

/// Returns the CRC-32. Pass an earlier result as `crc` to continue over a second piece.
uint32_t crc32_of(std::span<const uint8_t> bytes, uint32_t crc = 0);

}  // namespace tutti::data
