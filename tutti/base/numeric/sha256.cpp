#include "tutti/base/numeric/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tutti {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes
// (section 4.2.2).
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void compress(std::array<uint32_t, 8>& state, const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t)
    w[t] = uint32_t{block[4 * t]} << 24 | uint32_t{block[4 * t + 1]} << 16 |
           uint32_t{block[4 * t + 2]} << 8 | block[4 * t + 3];
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
    const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                        ((e & f) ^ (~e & g)) + kRound[t] + w[t];
    const uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, 8> add = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += add[i];
}

}  // namespace

void Sha256::update(std::span<const uint8_t> bytes) {
  const size_t held = size_ % 64;
  size_ += bytes.size();
  if (held > 0) {
    const size_t take = std::min(64 - held, bytes.size());
    std::copy_n(bytes.begin(), take, rest_.begin() + static_cast<ptrdiff_t>(held));
    if (held + take < 64) return;
    compress(state_, rest_.data());
    bytes = bytes.subspan(take);
  }
  for (; bytes.size() >= 64; bytes = bytes.subspan(64)) compress(state_, bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

void Sha256::update(std::string_view text) {
  update(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

Sha256Digest Sha256::bytes() const {
  std::array<uint32_t, 8> state = state_;
  std::array<uint8_t, 128> tail{};  // the rest, a one bit, zeros, the length in bits
  const size_t rest = size_ % 64;
  std::copy_n(rest_.begin(), rest, tail.begin());
  tail[rest] = 0x80;
  const size_t length = rest < 56 ? 64 : 128;
  for (size_t i = 0; i < 8; ++i) tail[length - 1 - i] = static_cast<uint8_t>(size_ * 8 >> 8 * i);
  for (size_t i = 0; i < length; i += 64) compress(state, tail.data() + i);
  Sha256Digest all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return all;
}

std::string Sha256::digest() const {
  std::string text;
  for (const uint8_t byte : bytes()) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256(std::span<const uint8_t> bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.digest();
}

Sha256Digest hmac_sha256(std::string_view key, std::string_view message) {
  std::array<uint8_t, 64> block{};
  if (key.size() > block.size()) {
    Sha256 sha;
    sha.update(key);
    std::ranges::copy(sha.bytes(), block.begin());
  } else {
    std::ranges::copy(key, block.begin());
  }
  std::array<uint8_t, 64> inner = block, outer = block;
  for (uint8_t& byte : inner) byte ^= 0x36;
  for (uint8_t& byte : outer) byte ^= 0x5c;
  Sha256 first;
  first.update(inner);
  first.update(message);
  Sha256 second;
  second.update(outer);
  second.update(first.bytes());
  return second.bytes();
}

bool equal(const Sha256Digest& a, const Sha256Digest& b) {
  unsigned differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs |= static_cast<unsigned>(a[i] ^ b[i]);
  return differs == 0;
}

}  // namespace tutti
