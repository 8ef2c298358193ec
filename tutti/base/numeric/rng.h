#pragma once
// Counter-based random numbers: every draw is a pure function of (seed, purpose, stream, counter),
// so no state has to be saved, shared or advanced, and results do not depend on how many ranks or
// threads draw them. Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC'11.

#include <array>
#include <cmath>
#include <cstdint>

namespace tutti {

/// Purposes of random numbers; distinct purposes never share a stream.
enum class Purpose : uint32_t {
  weights = 1,
  shuffle = 2,
  augment = 3,
  dropout = 4,
  generate = 5,
  test = 6,
  latent = 7,
  seeds = 8,
  window = 12,  ///< the window of an image that is used as a sample
  step_times = 13,
  text_windows = 14,
  text_tokens = 15,  ///< tokens by which a language model continues a text
  gossip = 20,
};

/// The Philox4x32-10 block: 128 random bits for a 128-bit counter and a 64-bit key.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Returns the key of all streams of a seed for one purpose.
constexpr std::array<uint32_t, 2> philox_key(uint64_t seed, Purpose purpose) {
  return {static_cast<uint32_t>(seed) ^ (static_cast<uint32_t>(purpose) * 0x85EBCA6Bu),
          static_cast<uint32_t>(seed >> 32)};
}

/// Computes N blocks at once, from a stream's counter `first` on, by loops that compilers
/// vectorise: words[w][i] is word w of block i.
template <size_t N>
void philox_blocks(std::array<uint32_t, 2> key, uint64_t stream, uint64_t first,
                   std::array<std::array<uint32_t, N>, 4>& words) {
  auto& [c0, c1, c2, c3] = words;
  for (size_t i = 0; i < N; ++i) {
    c0[i] = static_cast<uint32_t>(first + i);
    c1[i] = static_cast<uint32_t>((first + i) >> 32);
    c2[i] = static_cast<uint32_t>(stream);
    c3[i] = static_cast<uint32_t>(stream >> 32);
  }
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < N; ++i) {
      const uint64_t a = uint64_t{0xD2511F53u} * c0[i], b = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ key[0];
      c1[i] = static_cast<uint32_t>(b);
      c2[i] = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ key[1];
      c3[i] = static_cast<uint32_t>(a);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
}

/// A stream of random numbers f(seed, purpose, stream). `stream` names one thing, for example a
/// sample or (step, replica). Cheap to make: make one per sample and discard it. The first numbers
/// are drawn block by block, later ones many at a time.
class Rng {
 public:
  Rng(uint64_t seed, Purpose purpose, uint64_t stream)
      : key_(philox_key(seed, purpose)), stream_(stream) {}

  /// Skips that many draws; only for a stream from which nothing was drawn yet.
  void skip(uint64_t draws) {
    counter_ = draws / 4;
    used_ = drawn_ = 0;
    for (uint64_t i = 0; i < draws % 4; ++i) next_u32();
  }
  uint32_t next_u32() {
    if (used_ == drawn_) draw();
    return numbers_[used_++];
  }
  uint64_t next_u64() {
    const uint64_t high = next_u32();
    return high << 32 | next_u32();
  }
  /// Returns a uniform number in [0, 1), 24 bits.
  float uniform() { return static_cast<float>(next_u32() >> 8) * 0x1p-24f; }
  /// Returns a uniform number in [0, bound), with negligible modulo bias (bound < 2^32): Lemire's
  /// multiply-shift.
  uint32_t below(uint32_t bound) {
    return static_cast<uint32_t>(uint64_t{next_u32()} * bound >> 32);
  }
  /// Returns a standard normal number by Box-Muller; uses two draws for one value so that the
  /// number of draws is fixed.
  float normal() {
    const double u = (next_u32() + 1.0) * 0x1p-32;
    const double v = next_u32() * 0x1p-32;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v));
  }
  /// Returns a Poisson number with the given mean: Knuth's product for small means, a rounded
  /// normal above 64.
  uint32_t poisson(double mean) {
    if (mean > 64)
      return static_cast<uint32_t>(std::fmax(0.0, std::round(mean + std::sqrt(mean) * normal())));
    const double limit = std::exp(-mean);
    double product = 1;
    uint32_t count = 0;
    while ((product *= (next_u32() + 1.0) * 0x1p-32) > limit) ++count;
    return count;
  }

 private:
  static constexpr size_t kAhead = 16;  // blocks
  /// Draws the next numbers into numbers_.
  void draw();

  std::array<uint32_t, 2> key_;
  uint64_t stream_;
  uint64_t counter_ = 0;         // counter of the next block
  size_t used_ = 0, drawn_ = 0;  // how many of numbers_ are used, and how many are drawn
  std::array<uint32_t, 4 * kAhead> numbers_;
};

}  // namespace tutti
