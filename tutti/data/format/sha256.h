#pragma once
// SHA-256 (FIPS 180-4), for comparing files with the lists that data sets are published with.

#include <cstdint>
#include <span>
#include <string>

namespace tutti::data {

/// The digest as 64 lower-case hexadecimal digits.
std::string sha256(std::span<const uint8_t> bytes);

}  // namespace tutti::data
