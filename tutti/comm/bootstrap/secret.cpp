#include "tutti/comm/bootstrap/secret.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/random_bits.h"

namespace tutti::comm {

Nonce fresh_nonce() {
  Nonce nonce;
  if (!fill_random(std::as_writable_bytes(std::span(nonce))))
    throw CommError(
        fmt::format("the kernel gives no random numbers (getrandom): {}", std::strerror(errno)));
  return nonce;
}

Sha256Digest proof(std::string_view secret, std::string_view role, std::string_view message) {
  return hmac_sha256(secret, fmt::format("tutti {} {}\n{}", role, message.size(), message));
}

}  // namespace tutti::comm
