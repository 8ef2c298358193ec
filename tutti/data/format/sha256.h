#pragma once
// SHA-256 (FIPS 180-4), for comparing files with the lists that data sets are published with.

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tutti::data {

/// Takes the bytes piece by piece.
class Sha256 {
 public:
  void update(std::span<const uint8_t> bytes);
  /// Of everything so far, as 64 lower-case hexadecimal digits.
  std::string digest() const;

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_{};  // bytes of a block that is not full yet
  uint64_t size_ = 0;               // of all bytes so far
};

/// The digest of one piece.
std::string sha256(std::span<const uint8_t> bytes);

}  // namespace tutti::data
