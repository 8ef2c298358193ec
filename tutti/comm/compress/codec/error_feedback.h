#pragma once
// Error feedback: a codec's loss in one step is added to the gradient of the next, so that in the
// long run everything is sent:
//   acc = gradient + residual;  out = encode(acc);  residual = acc - decoded(out)
// The sum of the decoded vectors over all steps plus the residual is the sum of the gradients. For
// top-k this is `acc[I] = 0`. Seide et al. 2014 (1-bit SGD); Karimireddy, Rebjock, Stich, Jaggi,
// Error feedback fixes SignSGD and other gradient compression schemes (2019).

#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/comm/compress/codec/codec.h"

namespace tutti::comm {

/// The loss of a compression, as squared norms; those of several pieces of a vector add up.
struct Loss {
  double lost = 0;   ///< ||residual||^2
  double whole = 0;  ///< ||acc||^2
  /// Returns 0 for nothing lost, 1 for nothing sent. Not finite when acc was not, or when the codec
  /// overflowed (fp16).
  double ratio() const { return whole == 0 ? 0 : lost / whole; }
  Loss& operator+=(const Loss& other) {
    lost += other.lost;
    whole += other.whole;
    return *this;
  }
};

class ErrorFeedback {
 public:
  /// The residual is the caller's memory, because it belongs in the checkpoint; it outlives this
  /// object. It holds zeros at the start of a training, or the checkpoint's values. encode()
  /// continues from its contents.
  explicit ErrorFeedback(std::span<float> residual) : residual_(residual) {}

  /// Encodes gradient and residual. The gradient is the sum of `parts`, added in their order to the
  /// residual; each has as many floats as the residual and does not overlap it. No parts: the
  /// residual has everything already. out: codec.encoded_bytes(count). step as in Codec::encode.
  /// Does not allocate. When the sent values are not finite, the elements whose difference is not
  /// finite have residual 0 afterwards: a step that is skipped for a NaN does not spoil later ones.
  /// Threads that wait at `work` take part; no bit depends on them.
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

/// Sets elements of `rest` to 0 where they are not finite. Returns its squared norm before. This is
/// the last step of every error feedback.
double settle_residual(std::span<float> rest);

}  // namespace tutti::comm
