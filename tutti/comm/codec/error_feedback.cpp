#include "tutti/comm/codec/error_feedback.h"

#include <cmath>

#include "tutti/base/error.h"
#include "tutti/comm/codec/lanes.h"

namespace tutti::comm {

double settle_residual(std::span<float> rest, double whole) {
  const double squares = sum_of_squares(rest);
  if (!std::isfinite(squares))
    for (float& x : rest) x = std::isfinite(x) ? x : 0.0f;
  return whole == 0 ? 0 : squares / whole;
}

double ErrorFeedback::encode(const Codec& codec, std::span<const float> gradient, std::span<std::byte> out, uint64_t step) {
  CHECK(gradient.size() == residual_.size(), "a gradient of {}, a residual of {}", gradient.size(), residual_.size());
  for (size_t i = 0; i < gradient.size(); ++i) residual_[i] += gradient[i];
  const double whole = sum_of_squares(residual_);
  codec.encode(residual_, out, step);
  codec.add_decoded(out, residual_, -1);
  return settle_residual(residual_, whole);
}

}  // namespace tutti::comm
