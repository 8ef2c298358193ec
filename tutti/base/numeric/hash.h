#pragma once
// FNV-1a, 64 bits: distinguishes texts and numbers, but is no protection against malice.

#include <cstdint>
#include <string_view>

namespace tutti {

/// The hash of everything added, in order.
class Fnv1a {
 public:
  constexpr void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
  }
  constexpr void add(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) add_byte(value >> (8 * byte) & 0xFF);
  }
  constexpr uint64_t value() const { return hash_; }

 private:
  constexpr void add_byte(uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }
  uint64_t hash_ = 0xcbf29ce484222325u;
};

constexpr uint64_t fnv1a(std::string_view text) {
  Fnv1a hash;
  hash.add(text);
  return hash.value();
}

}  // namespace tutti
