// bf16 and fp16: each float is rounded to 16 bits, to nearest even. A block is only the number of
// floats that are converted at a time.

#include <cstring>

#include "tutti/comm/compress/codec/block_codec.h"
#include "tutti/comm/compress/codec/fp16.h"
#include "tutti/tensor/dtype.h"

namespace tutti::comm {
namespace {

template <class Half>
class HalfCodec final : public BlockCodec {
 public:
  explicit HalfCodec(const char* name) : BlockCodec(kLargestBlock), name_(name) {}
  std::string name() const override { return name_; }

 private:
  size_t block_bytes(size_t n) const override { return n * sizeof(uint16_t); }

  void encode_block(std::span<const float> x, std::byte* out) const override {
    alignas(64) uint16_t bits[kLargestBlock];
    for (size_t i = 0; i < x.size(); ++i) bits[i] = Half(x[i]).bits;
    std::memcpy(out, bits, block_bytes(x.size()));
  }

  void decode_block(const std::byte* in, std::span<float> y) const override {
    alignas(64) uint16_t bits[kLargestBlock];
    std::memcpy(bits, in, block_bytes(y.size()));
    for (size_t i = 0; i < y.size(); ++i) {
      Half half;
      half.bits = bits[i];
      y[i] = static_cast<float>(half);
    }
  }

  std::string name_;
};

}  // namespace

std::unique_ptr<Codec> make_bf16() { return std::make_unique<HalfCodec<bf16>>("bf16"); }
std::unique_ptr<Codec> make_fp16() { return std::make_unique<HalfCodec<fp16>>("fp16"); }

}  // namespace tutti::comm
