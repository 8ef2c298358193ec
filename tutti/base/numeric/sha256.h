#pragma once
// SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104): for comparing files with the published lists of
// data sets, and for proving knowledge of a secret without sending it.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tutti {

using Sha256Digest = std::array<uint8_t, 32>;

/// Takes the bytes in pieces.
class Sha256 {
 public:
  void update(std::span<const uint8_t> bytes);
  void update(std::string_view text);
  /// Returns the digest of everything so far.
  Sha256Digest bytes() const;
  /// Returns the same as 64 lower-case hexadecimal digits.
  std::string digest() const;

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_{};  // bytes of a block that is not full yet
  uint64_t size_ = 0;               // bytes so far
};

/// Returns the digest of one piece, as hexadecimal digits.
std::string sha256(std::span<const uint8_t> bytes);
/// Computes HMAC-SHA256 with keys of any length.
Sha256Digest hmac_sha256(std::string_view key, std::string_view message);
/// Whether the digests are equal, in a time that does not depend on where they differ.
bool equal(const Sha256Digest& a, const Sha256Digest& b);

}  // namespace tutti
