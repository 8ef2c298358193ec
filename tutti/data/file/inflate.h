#pragma once
// Inflating what lies in memory or in a part of a file to a size that is known before.

#include <cstdint>
#include <span>
#include <string>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// deflate gains at most a factor of 1032.
inline constexpr int64_t kMostInflation = 1032;

/// How the deflate stream is wrapped.
enum class Deflated { bare /* zip */, zlib /* HDF5 */ };

/// Inflates the `stored` bytes at `first` of `file` into `out`, all of which they must fill.
/// BadFile that begins with `what` (file and part).
void inflate_part(const FileBytes& file, int64_t first, int64_t stored, Deflated wrapping,
                  std::span<uint8_t> out, const std::string& what);

/// Inflates from the start as far as `out` has room or the stream goes; says how far.
size_t inflate_start(const FileBytes& file, int64_t first, int64_t stored, Deflated wrapping,
                     std::span<uint8_t> out, const std::string& what);

/// As inflate_part(), of bytes in memory.
void inflate_bytes(std::span<const uint8_t> stored, Deflated wrapping, std::span<uint8_t> out,
                   const std::string& what);

}  // namespace tutti::data
