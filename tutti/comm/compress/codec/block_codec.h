#pragma once
// BlockCodec: codecs that treat a fixed number of neighbouring floats together, and each such block
// alone. The last block may be shorter. Only for the files of this folder; users call make_codec().

#include <memory>

#include "tutti/comm/compress/codec/codec.h"

namespace tutti::comm {

class BlockCodec : public Codec {
 public:
  size_t encoded_bytes(size_t count) const final;
  size_t granule() const final { return block_; }

 protected:
  static constexpr size_t kLargestBlock = 1024;
  /// Floats in a block, at most kLargestBlock.
  explicit BlockCodec(size_t block);

 private:
  void encode_values(std::span<const float> values, std::span<std::byte> out, uint64_t step,
                     SharedWork* work) const final;
  void decode_values(std::span<const std::byte> in, std::span<float> values) const final;
  void add_values(std::span<const std::byte> in, std::span<float> sum, float weight) const final;

  // Work on a block of n floats. The bytes have any alignment.
  virtual size_t block_bytes(size_t n) const = 0;
  virtual void encode_block(std::span<const float> x, std::byte* out) const = 0;
  virtual void decode_block(const std::byte* in, std::span<float> y) const = 0;

  size_t block_;
};

// One in each file, bf16 and fp16 in half.cpp.
std::unique_ptr<Codec> make_bf16();
std::unique_ptr<Codec> make_fp16();
std::unique_ptr<Codec> make_int8();
std::unique_ptr<Codec> make_onebit();

}  // namespace tutti::comm
