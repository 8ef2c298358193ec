#include "tutti/sync/served_codecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tutti/base/error.h"
#include "tutti/comm/compress/codec/error_feedback.h"

namespace tutti::sync {

ServedCodecs::ServedCodecs(const exchange::ExchangeCompression& compression)
    : compressed_(compression.buckets) {
  for (const exchange::CompressionPhase& phase : compression.phases)
    phases_.push_back({phase.first_step, phase.compression.compresses()
                                             ? comm::make_codec(to_string(phase.compression))
                                             : nullptr});
  CHECK(phases_.size() <= 256, "{} phases of compression", phases_.size());
}

int ServedCodecs::encoded_buckets() const {
  return static_cast<int>(std::ranges::count(compressed_, true));
}

size_t ServedCodecs::most_bytes(size_t floats) const {
  size_t most = 0;
  for (const Phase& phase : phases_) most = std::max(most, phase.bytes(floats));
  return most + 1;
}

std::span<std::byte> ServedCodecs::encode(const Part& part, std::span<std::byte> room,
                                          SharedWork* work) const {
  const auto next = std::ranges::find_if(
      phases_, [&part](const Phase& phase) { return phase.first_step > part.step; });
  CHECK(next != phases_.begin(), "step {} is before the first phase", part.step);
  const Phase& phase = *std::prev(next);
  const size_t bytes = phase.bytes(part.gradient.size());
  const std::span<std::byte> code = room.first(bytes);
  if (phase.codec) {
    comm::ErrorFeedback(part.unsent)
        .encode(*phase.codec, part.gradient, code, static_cast<uint64_t>(part.step), work);
  } else {
    for (size_t i = 0; i < part.gradient.size(); ++i) part.unsent[i] += part.gradient[i];
    std::memcpy(code.data(), part.unsent.data(), bytes);
    std::ranges::fill(part.unsent, 0.0F);
  }
  room[bytes] = static_cast<std::byte>(std::distance(phases_.begin(), next) - 1);
  return room.first(bytes + 1);
}

void ServedCodecs::decode(std::span<const std::byte> message, std::span<float> gradient) const {
  const size_t number = message.empty() ? phases_.size() : static_cast<size_t>(message.back());
  if (number >= phases_.size() || message.size() != phases_[number].bytes(gradient.size()) + 1)
    throw CommError(
        fmt::format("a compressed gradient of {} values came as {} bytes, of phase {} of {}: two "
                    "ranks run different programs or configurations",
                    gradient.size(), message.size(), number, phases_.size()));
  const std::span<const std::byte> code = message.first(message.size() - 1);
  if (const auto& codec = phases_[number].codec)
    codec->decode(code, gradient);
  else
    std::memcpy(gradient.data(), code.data(), code.size());
}

}  // namespace tutti::sync
