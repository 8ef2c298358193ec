#include "tutti/comm/compress/codec/block_codec.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::comm {

BlockCodec::BlockCodec(size_t block) : block_(block) {
  CHECK(block >= 1 && block <= kLargestBlock, "blocks of {}", block);
}

size_t BlockCodec::encoded_bytes(size_t count) const {
  const size_t rest = count % block_;
  return count / block_ * block_bytes(block_) + (rest > 0 ? block_bytes(rest) : 0);
}

void BlockCodec::encode_values(std::span<const float> values, std::span<std::byte> out, uint64_t,
                               SharedWork*) const {
  const size_t bytes = block_bytes(block_);
  std::byte* to = out.data();
  for (size_t begin = 0; begin < values.size(); begin += block_, to += bytes)
    encode_block(values.subspan(begin, std::min(block_, values.size() - begin)), to);
}

void BlockCodec::decode_values(std::span<const std::byte> in, std::span<float> values) const {
  const size_t bytes = block_bytes(block_);
  const std::byte* from = in.data();
  for (size_t begin = 0; begin < values.size(); begin += block_, from += bytes)
    decode_block(from, values.subspan(begin, std::min(block_, values.size() - begin)));
}

// Decodes into memory: if the decoding were inlined into the sum, a compiler could fuse its
// multiplication with the addition, and the value that error feedback subtracts would differ in the
// last bit from the value that the others receive.
void BlockCodec::add_values(std::span<const std::byte> in, std::span<float> sum,
                            float weight) const {
  alignas(64) float decoded[kLargestBlock];
  const size_t bytes = block_bytes(block_);
  const std::byte* from = in.data();
  for (size_t begin = 0; begin < sum.size(); begin += block_, from += bytes) {
    const size_t n = std::min(block_, sum.size() - begin);
    decode_block(from, {decoded, n});
    for (size_t i = 0; i < n; ++i) sum[begin + i] += weight * decoded[i];
  }
}

}  // namespace tutti::comm
