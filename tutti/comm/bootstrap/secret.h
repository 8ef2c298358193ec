#pragma once
// Two processes show each other that they know the job's secret, without sending it: each sends a
// number that was never used before, and a digest of both numbers with the secret.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/numeric/sha256.h"

namespace tutti::comm {

using Nonce = std::array<uint8_t, 32>;
/// Returns a number from the kernel's generator. Throws CommError where it gives none.
Nonce fresh_nonce();

inline std::string_view text_of(const Nonce& nonce) {
  return {reinterpret_cast<const char*>(nonce.data()), nonce.size()};
}

/// Returns both numbers as one message, the called process's first.
inline std::string both(const Nonce& server, const Nonce& client) {
  return std::string(text_of(server)) + std::string(text_of(client));
}

/// Returns a digest of a message that only a process with the secret can make. `role` distinguishes
/// the places where proofs are used, so that no proof can be used elsewhere.
Sha256Digest proof(std::string_view secret, std::string_view role, std::string_view message);

}  // namespace tutti::comm
