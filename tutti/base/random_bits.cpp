#include "tutti/base/random_bits.h"

#include <sys/random.h>

#include <cerrno>

namespace tutti {

bool fill_random(std::span<std::byte> bits) noexcept {
  while (!bits.empty()) {
    const ssize_t n = ::getrandom(bits.data(), bits.size(), 0);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) bits = bits.subspan(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace tutti
