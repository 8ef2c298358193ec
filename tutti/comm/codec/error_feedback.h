#pragma once
// Error feedback: what a codec loses in one step is added to the gradient of the next, so that in the long run everything is sent:
//   acc = gradient + residual;  out = encode(acc);  residual = acc - decoded(out)
// The sum of what was decoded over all steps plus the residual is the sum of the gradients. For top-k this is `acc[I] = 0`.
// Seide et al. 2014 (1-bit SGD); Karimireddy, Rebjock, Stich, Jaggi, Error feedback fixes SignSGD and other gradient compression schemes (2019).

#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/comm/codec/codec.h"

namespace tutti::comm {

class ErrorFeedback {
 public:
  /// The residual is the caller's memory, because it belongs into the checkpoint; it outlives this object. Zeros at the start of a training,
  /// or what the checkpoint has. An encode() continues from whatever lies there.
  explicit ErrorFeedback(std::span<float> residual) : residual_(residual) {}

  /// gradient: as many floats as the residual, not overlapping it; out: codec.encoded_bytes(count). step as in Codec::encode. Does not allocate.
  /// Returns what this step's compression costs, ||residual||^2 / ||acc||^2: 0 nothing lost, 1 nothing sent; not finite when acc was not, or
  /// when the codec overflowed (fp16). In that case what was sent is not finite either, and the elements whose difference is not finite have
  /// residual 0 afterwards: a step that is skipped for a NaN does not spoil those after it.
  double encode(const Codec& codec, std::span<const float> gradient, std::span<std::byte> out, uint64_t step = 0);

  std::span<const float> residual() const { return residual_; }

 private:
  std::span<float> residual_;
};

/// rest = 0 where it is not finite. Returns its squared norm, before, over `whole`; 0 of 0 is 0. The last step of every error feedback.
double settle_residual(std::span<float> rest, double whole);

}  // namespace tutti::comm
