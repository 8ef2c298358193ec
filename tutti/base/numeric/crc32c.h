#pragma once
// CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected 0x82F63B78), as RFC 3720 defines it, and the
// masked form that TFRecord framing stores.

#include <cstddef>
#include <cstdint>

namespace tutti {

/// Returns the CRC-32C of `bytes` bytes; pass an earlier result as `crc` to continue with a second
/// piece.
uint32_t crc32c(const void* data, size_t bytes, uint32_t crc = 0);

/// Computes the same without the processor's instruction for it: for tests.
uint32_t crc32c_by_tables(const void* data, size_t bytes, uint32_t crc = 0);

/// Applies TFRecord's mask: rotates right by 15 bits and adds a constant, so that a CRC of data
/// holding CRCs stays a good check.
constexpr uint32_t masked_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

}  // namespace tutti
