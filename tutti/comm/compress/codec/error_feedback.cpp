#include "tutti/comm/compress/codec/error_feedback.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/comm/compress/codec/lanes.h"

namespace tutti::comm {
namespace {

// What passes through all steps at a time: it stays in the cache from the sum to the residual.
constexpr size_t kStrip = 4096;

void add(const float* __restrict from, std::span<float> into) {
  for (size_t i = 0; i < into.size(); ++i) into[i] += from[i];
}

}  // namespace

double settle_residual(std::span<float> rest) {
  const double squares = sum_of_squares(rest);
  if (!std::isfinite(squares))
    for (float& x : rest) x = std::isfinite(x) ? x : 0.0f;
  return squares;
}

Loss ErrorFeedback::encode(const Codec& codec, std::span<const float* const> parts,
                           std::span<std::byte> out, uint64_t step) {
  const size_t count = residual_.size();
  CHECK(out.size() == codec.encoded_bytes(count), "{}: {} bytes for {} values", codec.name(),
        out.size(), count);
  const size_t strip = codec.granule() == 0 ? count : kStrip / codec.granule() * codec.granule();
  Loss loss;
  size_t at = 0;
  for (size_t begin = 0; begin < count; begin += strip) {
    const std::span<float> rest = residual_.subspan(begin, std::min(strip, count - begin));
    for (const float* part : parts) add(part + begin, rest);
    loss.whole += sum_of_squares(rest);
    const std::span<std::byte> piece = out.subspan(at, codec.encoded_bytes(rest.size()));
    at += piece.size();
    codec.encode(rest, piece, step);
    codec.add_decoded(piece, rest, -1);
    loss.lost += settle_residual(rest);
  }
  return loss;
}

Loss ErrorFeedback::encode(const Codec& codec, std::span<const float> gradient,
                           std::span<std::byte> out, uint64_t step) {
  CHECK(gradient.size() == residual_.size(), "a gradient of {}, a residual of {}", gradient.size(),
        residual_.size());
  const float* const parts[] = {gradient.data()};
  return encode(codec, parts, out, step);
}

}  // namespace tutti::comm
