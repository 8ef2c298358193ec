// onebit: blocks of 1024 floats become the mean of the floats >= 0, the mean of the floats < 0, and
// a bit for each float's group: 136 bytes instead of 4096. Bit i % 8 of byte i / 8 is set for
// x[i] < 0.
// The means are the two values with the least squared error for these groups; the mean of an empty
// group is 0. NaN or infinity in the block: both means are NaN. Useless without error feedback.
// Seide, Fu, Droppo, Li, Yu, 1-bit stochastic gradient descent and its application to data-parallel
// distributed training of speech DNNs (2014).

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tutti/comm/compress/codec/block_codec.h"
#include "tutti/comm/compress/codec/lanes.h"

namespace tutti::comm {
namespace {

constexpr size_t kOnebitBlock = 1024;

size_t sign_bytes(size_t n) { return (n + 7) / 8; }

// Packs the signs; returns how many floats are negative.
size_t pack_signs(std::span<const float> x, std::byte* out) {
  alignas(64) uint8_t negative[kOnebitBlock + 8];
  for (size_t i = 0; i < x.size(); ++i) negative[i] = x[i] < 0 ? 1 : 0;
  std::memset(negative + x.size(), 0, 8);
  size_t count = 0;
  for (size_t byte = 0; byte < sign_bytes(x.size()); ++byte) {
    const unsigned bits = pack_flags(negative + 8 * byte);
    out[byte] = static_cast<std::byte>(bits);
    count += static_cast<size_t>(std::popcount(bits));
  }
  return count;
}

float mean_of(double sum, size_t n) {
  return n > 0 ? static_cast<float>(sum / static_cast<double>(n)) : 0.0f;
}

class Onebit final : public BlockCodec {
 public:
  Onebit() : BlockCodec(kOnebitBlock) {}
  std::string name() const override { return "onebit"; }

 private:
  size_t block_bytes(size_t n) const override { return 2 * sizeof(float) + sign_bytes(n); }

  void encode_block(std::span<const float> x, std::byte* out) const override {
    const size_t negative = pack_signs(x, out + 2 * sizeof(float));
    const double below = sum_lanes<double>(
        x.size(), [x](size_t i) { return static_cast<double>(x[i] < 0 ? x[i] : 0.0f); });
    const double above = sum_lanes<double>(
        x.size(), [x](size_t i) { return static_cast<double>(x[i] < 0 ? 0.0f : x[i]); });
    float means[2] = {mean_of(above, x.size() - negative), mean_of(below, negative)};
    if (!std::isfinite(above + below))
      means[0] = means[1] = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(out, means, sizeof means);
  }

  void decode_block(const std::byte* in, std::span<float> y) const override {
    uint32_t means[2];  // as bits: a branch would be mispredicted every other time
    std::memcpy(means, in, sizeof means);
    const uint32_t difference = means[0] ^ means[1];
    const std::byte* signs = in + sizeof means;
    alignas(64) float decoded[kOnebitBlock];
    for (size_t byte = 0; byte < sign_bytes(y.size()); ++byte) {
      const auto bits = static_cast<uint32_t>(signs[byte]);
      for (uint32_t i = 0; i < 8; ++i)
        decoded[8 * byte + i] =
            std::bit_cast<float>(means[0] ^ (difference & (0u - (bits >> i & 1u))));
    }
    std::memcpy(y.data(), decoded, y.size() * sizeof(float));
  }
};

}  // namespace

std::unique_ptr<Codec> make_onebit() { return std::make_unique<Onebit>(); }

}  // namespace tutti::comm
