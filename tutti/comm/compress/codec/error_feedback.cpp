#include "tutti/comm/compress/codec/error_feedback.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/shared_work.h"
#include "tutti/comm/compress/codec/lanes.h"

namespace tutti::comm {
namespace {

// Floats that pass through all steps together: they stay in the cache from the sum to the residual.
constexpr size_t kStrip = 4096;
// Strips that another thread may take over together.
constexpr size_t kStripsOfAPiece = 16;

Loss added(Loss sum, const Loss& loss) { return sum += loss; }

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

// For a codec of blocks: every strip goes through all steps while it is in the cache.
Loss ErrorFeedback::encode_strips(const Codec& codec, std::span<const float* const> parts,
                                  std::span<std::byte> out, uint64_t step, SharedWork* work) {
  const size_t strip = kStrip / codec.granule() * codec.granule();
  const Pieces pieces(residual_.size(), strip, kStripsOfAPiece * strip);
  std::array<Loss, Pieces::kMost> losses;
  SharedWork::run(work, pieces.count(), [&](size_t i) {
    Loss loss;
    const size_t end = pieces.begin(i) + pieces.length(i);
    for (size_t begin = pieces.begin(i); begin < end; begin += strip) {
      const std::span<float> rest = residual_.subspan(begin, std::min(strip, end - begin));
      for (const float* part : parts) add(part + begin, rest);
      loss.whole += sum_of_squares(rest);
      const std::span<std::byte> code =
          out.subspan(codec.encoded_bytes(begin), codec.encoded_bytes(rest.size()));
      codec.encode(rest, code, step);
      codec.add_decoded(code, rest, -1);
      loss.lost += settle_residual(rest);
    }
    losses[i] = loss;
  });
  return std::accumulate(losses.begin(), losses.begin() + pieces.count(), Loss{}, added);
}

Loss ErrorFeedback::encode_whole(const Codec& codec, std::span<const float* const> parts,
                                 std::span<std::byte> out, uint64_t step, SharedWork* work) {
  const Pieces pieces(residual_.size(), 1, kStripsOfAPiece * kStrip);
  std::array<Loss, Pieces::kMost> losses;
  const auto rest = [&](size_t i) { return residual_.subspan(pieces.begin(i), pieces.length(i)); };
  SharedWork::run(work, pieces.count(), [&](size_t i) {
    for (const float* part : parts) add(part + pieces.begin(i), rest(i));
    losses[i].whole = sum_of_squares(rest(i));
  });
  codec.encode(residual_, out, step, work);
  codec.add_decoded(out, residual_, -1);
  SharedWork::run(work, pieces.count(),
                  [&](size_t i) { losses[i].lost = settle_residual(rest(i)); });
  return std::accumulate(losses.begin(), losses.begin() + pieces.count(), Loss{}, added);
}

Loss ErrorFeedback::encode(const Codec& codec, std::span<const float* const> parts,
                           std::span<std::byte> out, uint64_t step, SharedWork* work) {
  const size_t count = residual_.size();
  CHECK(out.size() == codec.encoded_bytes(count), "{}: {} bytes for {} values", codec.name(),
        out.size(), count);
  return codec.granule() == 0 ? encode_whole(codec, parts, out, step, work)
                              : encode_strips(codec, parts, out, step, work);
}

Loss ErrorFeedback::encode(const Codec& codec, std::span<const float> gradient,
                           std::span<std::byte> out, uint64_t step, SharedWork* work) {
  CHECK(gradient.size() == residual_.size(), "a gradient of {}, a residual of {}", gradient.size(),
        residual_.size());
  const float* const parts[] = {gradient.data()};
  return encode(codec, parts, out, step, work);
}

}  // namespace tutti::comm
