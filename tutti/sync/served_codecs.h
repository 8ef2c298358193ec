#pragma once
// ServedCodecs: the encoding of compressed gradients that are sent to servers. Each part of a
// bucket is encoded separately (comm/compress/codec/); one byte after the encoding names its phase,
// because a server does not know the step of a gradient.
//
// A worker adds what it did not send to its next gradient (error feedback): the gradients decoded
// by servers plus the workers' residuals equal the sum of all gradients. Weights are sent back
// dense. Lin, Han, Mao, Wang, Dally, Deep gradient compression (ICLR 2018), also send to servers.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/comm/compress/codec/codec.h"
#include "tutti/exchange/exchange.h"

namespace tutti::sync {

/// Immutable; safe from any thread.
class ServedCodecs {
 public:
  /// Makes an object that encodes nothing.
  ServedCodecs() = default;
  /// Throws ConfigError for a method that is not a codec.
  explicit ServedCodecs(const exchange::ExchangeCompression& compression);

  /// Returns whether parts of this bucket are encoded, in dense phases too.
  bool encodes(int bucket) const {
    return !compressed_.empty() && compressed_[static_cast<size_t>(bucket)];
  }
  int encoded_buckets() const;
  /// Returns the largest size of a message for a part of that many floats, over all phases.
  size_t most_bytes(size_t floats) const;

  struct Part {
    int64_t step = 0;  ///< step of the run
    std::span<const float> gradient;
    std::span<float> unsent;  ///< residual: as many floats; from earlier gradients, afterwards
                              ///< including this one
  };
  /// Writes the message to the beginning of `room`, which has most_bytes(), and returns it. A dense
  /// phase also sends the residual. Threads that wait at `work` take part; no bit depends on them.
  std::span<std::byte> encode(const Part& part, std::span<std::byte> room, SharedWork* work) const;
  /// Decodes a message. Throws CommError if `message` cannot be one.
  void decode(std::span<const std::byte> message, std::span<float> gradient) const;

 private:
  struct Phase {
    int64_t first_step = 0;
    std::unique_ptr<comm::Codec> codec;  // null: dense
    size_t bytes(size_t floats) const {
      return codec ? codec->encoded_bytes(floats) : floats * sizeof(float);
    }
  };
  std::vector<bool> compressed_;  // by bucket
  std::vector<Phase> phases_;
};

}  // namespace tutti::sync
