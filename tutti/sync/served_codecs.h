#pragma once
// ServedCodecs: how gradients go to servers where they are compressed. Each part of a bucket is
// encoded by itself (comm/compress/codec/); behind the encoding one byte says of which phase it is,
// because a server does not know the step of a gradient.
//
// What a worker did not send it adds to its next gradient (error feedback): what servers have
// decoded and what workers keep is together the sum of all gradients. Weights come back dense. Lin,
// Han, Mao, Wang, Dally, Deep gradient compression (ICLR 2018), which sends to servers, too.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/comm/compress/codec/codec.h"
#include "tutti/exchange/exchange.h"

namespace tutti {

/// Immutable: of any thread.
class ServedCodecs {
 public:
  /// Encodes nothing.
  ServedCodecs() = default;
  /// ConfigError for a method that is no codec.
  explicit ServedCodecs(const ExchangeCompression& compression);

  /// Whether parts of this bucket are encoded, in dense phases too.
  bool encodes(int bucket) const {
    return !compressed_.empty() && compressed_[static_cast<size_t>(bucket)];
  }
  int encoded_buckets() const;
  /// Of the message of a part of so many floats, in any phase.
  size_t most_bytes(size_t floats) const;

  struct Part {
    int64_t step = 0;  ///< of the run
    std::span<const float> gradient;
    std::span<float> unsent;  ///< as many; of earlier gradients, and afterwards of this one, too
  };
  /// The message, at the begin of `room`, which has most_bytes(). A dense phase sends what was
  /// unsent, too. Threads that wait at `work` take part; no bit depends on them.
  std::span<std::byte> encode(const Part& part, std::span<std::byte> room, SharedWork* work) const;
  /// What was sent. CommError where `message` cannot be that.
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

}  // namespace tutti
