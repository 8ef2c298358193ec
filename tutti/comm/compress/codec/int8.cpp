// int8: blocks of 256 floats become one float scale = max |x| / 127 and 256 integers round(x /
// scale), ties to even: 260 bytes instead of 1024, with an error of at most half a scale. MLSL's
// quantisation also has blocks of 256 with a scale each (and a header of 12 bytes).
//
//   NaN or infinity in the block   scale NaN, integers 0: the whole block decodes to NaN
//   scale below 2^-126             (max |x| below 1.5e-36, zeros included) scale and integers 0:
//                                  the block decodes to +0

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "tutti/comm/compress/codec/block_codec.h"

namespace tutti::comm {
namespace {

constexpr size_t kInt8Block = 256;

class Int8 final : public BlockCodec {
 public:
  Int8() : BlockCodec(kInt8Block) {}
  std::string name() const override { return "int8"; }

 private:
  size_t block_bytes(size_t n) const override { return sizeof(float) + n; }

  void encode_block(std::span<const float> x, std::byte* out) const override {
    uint32_t largest =
        0;  // as bits without sign, which are ordered as the magnitudes, infinity and NaN last
    for (const float value : x)
      largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7FFFFFFFu);
    const float magnitude = std::bit_cast<float>(largest);
    const bool finite = largest < std::bit_cast<uint32_t>(std::numeric_limits<float>::infinity());
    float scale = finite ? magnitude / 127 : std::numeric_limits<float>::quiet_NaN();
    if (scale < std::numeric_limits<float>::min()) scale = 0;
    std::memcpy(out, &scale, sizeof scale);

    std::byte* integers = out + sizeof scale;
    if (!(scale > 0)) {
      std::memset(integers, 0, x.size());
      return;
    }
    const float per_scale = 1 / scale;
    // Between 2^23 and 2^24 all floats are integers: the sum is rounded to one, and its low byte is
    // that integer in two's complement.
    constexpr float kInteger = 0x1.8p23f;
    int8_t rounded[kInt8Block];
    for (size_t i = 0; i < x.size(); ++i)
      rounded[i] = static_cast<int8_t>(std::bit_cast<uint32_t>(x[i] * per_scale + kInteger));
    std::memcpy(integers, rounded, x.size());
  }

  void decode_block(const std::byte* in, std::span<float> y) const override {
    float scale;
    int8_t integers[kInt8Block];
    std::memcpy(&scale, in, sizeof scale);
    std::memcpy(integers, in + sizeof scale, y.size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = scale * static_cast<float>(integers[i]);
  }
};

}  // namespace

std::unique_ptr<Codec> make_int8() { return std::make_unique<Int8>(); }

}  // namespace tutti::comm
