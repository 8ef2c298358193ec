#pragma once
// Error feedback: what a codec loses in one step is added to the gradient of the next, so that in
// the long run everything is sent:
//   acc = gradient + residual;  out = encode(acc);  residual = acc - decoded(out)
// The sum of what was decoded over all steps plus the residual is the sum of the gradients. For
// top-k this is `acc[I] = 0`. Seide et al. 2014 (1-bit SGD); Karimireddy, Rebjock, Stich, Jaggi,
// Error feedback fixes SignSGD and other gradient compression schemes (2019).

#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/comm/compress/codec/codec.h"

namespace tutti::comm {

/// What a compression costs, as squared norms; those of several pieces of a vector add up.
struct Loss {
  double lost = 0;   ///< ||residual||^2
  double whole = 0;  ///< ||acc||^2
  /// 0 nothing lost, 1 nothing sent. Not finite when acc was not, or when the codec overflowed
  /// (fp16).
  double ratio() const { return whole == 0 ? 0 : lost / whole; }
  Loss& operator+=(const Loss& other) {
    lost += other.lost;
    whole += other.whole;
    return *this;
  }
};

class ErrorFeedback {
 public:
  /// The residual is the caller's memory, because it belongs into the checkpoint; it outlives this
  /// object. Zeros at the start of a training, or what the checkpoint has. An encode() continues
  /// from whatever lies there.
  explicit ErrorFeedback(std::span<float> residual) : residual_(residual) {}

  /// The gradient is the sum of `parts`, added in their order to the residual; each has as many
  /// floats as the residual and does not overlap it. No parts: the residual has everything already.
  /// out: codec.encoded_bytes(count). step as in Codec::encode. Does not allocate. When what was
  /// sent is not finite, the elements whose difference is not finite have residual 0 afterwards: a
  /// step that is skipped for a NaN does not spoil those after it. Threads that wait at `work` take
  /// part; no bit depends on them.
  Loss encode(const Codec& codec, std::span<const float* const> parts, std::span<std::byte> out,
              uint64_t step = 0, SharedWork* work = nullptr);
  Loss encode(const Codec& codec, std::span<const float> gradient, std::span<std::byte> out,
              uint64_t step = 0, SharedWork* work = nullptr);

  std::span<const float> residual() const { return residual_; }

 private:
  Loss encode_strips(const Codec& codec, std::span<const float* const> parts,
                     std::span<std::byte> out, uint64_t step, SharedWork* work);
  Loss encode_whole(const Codec& codec, std::span<const float* const> parts,
                    std::span<std::byte> out, uint64_t step, SharedWork* work);

  std::span<float> residual_;
};

/// rest = 0 where it is not finite. Returns its squared norm before. The last step of every error
/// feedback.
double settle_residual(std::span<float> rest);

}  // namespace tutti::comm
