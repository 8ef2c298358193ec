#pragma once
// How two processes show each other that they know the job's secret, without saying it: each sends
// a number that nobody has used before, and the other's digest of it with the secret.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/numeric/sha256.h"

namespace tutti::comm {

using Nonce = std::array<uint8_t, 32>;
/// From the kernel's generator. Throws CommError where it gives none.
Nonce fresh_nonce();

inline std::string_view text_of(const Nonce& nonce) {
  return {reinterpret_cast<const char*>(nonce.data()), nonce.size()};
}

/// Both numbers as one message; the first is that of the one who was called.
inline std::string both(const Nonce& server, const Nonce& client) {
  return std::string(text_of(server)) + std::string(text_of(client));
}

/// What only who knows the secret can say about a message. `role` tells apart what is said in
/// different places, so that no answer can be used elsewhere.
Sha256Digest proof(std::string_view secret, std::string_view role, std::string_view message);

}  // namespace tutti::comm
