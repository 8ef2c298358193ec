#include "tutti/comm/bootstrap/secret.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>

#include "tutti/base/error.h"

namespace tutti::comm {

Nonce fresh_nonce() {
  Nonce nonce;
  ssize_t n = 0;
  do n = getrandom(nonce.data(), nonce.size(), 0);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(nonce.size()))
    throw CommError("the kernel gives no random numbers (getrandom)");
  return nonce;
}

Sha256Digest proof(std::string_view secret, std::string_view role, std::string_view message) {
  return hmac_sha256(secret, fmt::format("tutti {} {}\n{}", role, message.size(), message));
}

}  // namespace tutti::comm
