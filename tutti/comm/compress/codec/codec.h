#pragma once
// Codec: turns a gradient into fewer bytes: `count` floats into encoded_bytes(count) bytes and
// back. It knows nothing of ranks, messages or layers. The number of bytes is a function of the
// count alone, so that every buffer is planned before step one.
//
//   spec        bytes for n floats             information kept
//   bf16        2 n                            8 bits of precision, float's range
//   fp16        2 n                            11 bits of precision up to 65504, then infinity
//   int8        n + 4 ceil(n / 256)            a scale for 256 floats: max |x| / 127
//   onebit      ceil(n / 8) + 8 ceil(n / 1024) signs, and the means of both signs of 1024 floats
//   topk:RATIO  8 max(1, round(RATIO n))       the largest magnitudes with their indices
//
// ErrorFeedback (error_feedback.h) keeps the losses of a codec and sends them in later steps;
// PowerSGD, which needs sums between its halves, is a class of its own (powersgd.h).
//
// A Codec is immutable: one object serves any number of buffers and threads at once. No function
// here allocates except name() and make_codec(). The same input gives the same bytes on every rank,
// for any number of threads and without state. NaN and infinity are never hidden: they decode to a
// value that is not finite (bf16, fp16: that element; int8, onebit: the whole block becomes NaN;
// topk: it is among the elements sent).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tutti {
class SharedWork;
}

namespace tutti::comm {}

namespace tutti::comm {

class Codec {
 public:
  virtual ~Codec() = default;

  /// Returns the text that make_codec() accepts.
  virtual std::string name() const = 0;
  /// Returns 0 for 0 floats.
  virtual size_t encoded_bytes(size_t count) const = 0;
  /// Returns the number of neighbours that are encoded together: a vector may be encoded in
  /// pieces of a multiple of it, whose encodings one after another are the encoding of the whole.
  /// 0: only as a whole. At most 1024.
  virtual size_t granule() const { return 0; }

  /// Encodes into `out`, which has encoded_bytes(values.size()) bytes, at any alignment. `step` is
  /// the number of the training step: topk uses it to choose among equal candidates; 0 chooses the
  /// first of them. Threads that wait at `work` take part; the bytes do not depend on them.
  void encode(std::span<const float> values, std::span<std::byte> out, uint64_t step = 0,
              SharedWork* work = nullptr) const;
  /// Sets values = decoded. Throws CommError when `in` cannot be an encoding of as many floats.
  void decode(std::span<const std::byte> in, std::span<float> values) const;
  /// Adds sum += weight * decoded, where `decoded` has the same bits as from decode(). A sparse
  /// codec touches its own entries only.
  void add_decoded(std::span<const std::byte> in, std::span<float> sum, float weight = 1) const;

 private:
  // Do the work of the public functions; the sizes are right.
  virtual void encode_values(std::span<const float> values, std::span<std::byte> out, uint64_t step,
                             SharedWork* work) const = 0;
  virtual void decode_values(std::span<const std::byte> in, std::span<float> values) const = 0;
  virtual void add_values(std::span<const std::byte> in, std::span<float> sum,
                          float weight) const = 0;
};

/// Makes "bf16", "topk:0.01", ... Throws ConfigError that lists the codecs, or the ratio's range.
std::unique_ptr<Codec> make_codec(std::string_view spec);

/// Sets sum = ((c0 + c1) + c2) + ... for the contributions whose encodings lie one after another in
/// `encodings`, as an allgather leaves them: the order of the ranks is the order of the sum. This
/// is the merge of HiTopKComm (step 4), for every codec. At least one contribution; one alone is
/// decoded. `work` as in encode().
void sum_contributions(const Codec& codec, std::span<const std::byte> encodings,
                       std::span<float> sum, SharedWork* work = nullptr);

}  // namespace tutti::comm
