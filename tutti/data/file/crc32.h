#pragma once
// CRC-32 as zip files hold it; zlib's.

#include <cstdint>
#include <span>

namespace tutti::data {

/// Pass an earlier result as `crc` to go on over a second piece.
uint32_t crc32_of(std::span<const uint8_t> bytes, uint32_t crc = 0);

}  // namespace tutti::data
