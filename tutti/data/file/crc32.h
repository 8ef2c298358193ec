#pragma once
// Computes the CRC-32 of zip files with zlib.

#include <cstdint>
#include <span>

namespace tutti::data {

/// Pass an earlier result as `crc` to continue over a second piece.
uint32_t crc32_of(std::span<const uint8_t> bytes, uint32_t crc = 0);

}  // namespace tutti::data
