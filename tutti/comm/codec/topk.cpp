#include "tutti/comm/codec/topk.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"
#include "tutti/comm/codec/lanes.h"

namespace tutti::comm {
namespace {

constexpr int kHalvings = 30;
constexpr uint32_t kInfinity = std::bit_cast<uint32_t>(std::numeric_limits<float>::infinity());
constexpr uint32_t kNothing = 0x80000000u;  // above every magnitude, NaN included

uint32_t magnitude_of(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu; }

// Counts the elements that reach a threshold. As soon as few are left between the two thresholds they are copied out, and all later counts
// look at them alone: most of the 30 passes over the vector need not be made.
class Counter {
 public:
  explicit Counter(std::span<const float> values) : values_(values) {}

  // Of a magnitude between the thresholds, once gather() was called.
  size_t reaching(uint32_t magnitude) const {
    if (!gathered_) return count(values_.size(), magnitude, [this](size_t i) { return magnitude_of(values_[i]); });
    return taken_ + count(near_count_, magnitude, [this](size_t i) { return near_[i]; });
  }

  void gather_if_few(const TopkThresholds& t) {
    if (gathered_ || t.reaching - t.taken > kFew) return;
    for (const float value : values_) {
      const uint32_t magnitude = magnitude_of(value);
      if (magnitude >= t.from && magnitude < t.above) near_[near_count_++] = magnitude;
    }
    taken_ = t.taken;
    gathered_ = true;
  }

 private:
  static constexpr size_t kFew = 4096;

  template <class Magnitude>
  static size_t count(size_t n, uint32_t threshold, Magnitude magnitude) {
    uint32_t reached = 0;
    for (size_t i = 0; i < n; ++i) reached += magnitude(i) >= threshold ? 1u : 0u;
    return reached;
  }

  std::span<const float> values_;
  bool gathered_ = false;
  size_t taken_ = 0;  // elements above the gathered ones
  size_t near_count_ = 0;
  uint32_t near_[kFew];
};

uint32_t finite_magnitude(float x) {
  const uint32_t magnitude = magnitude_of(x);
  return magnitude & (0u - static_cast<uint32_t>(magnitude < kInfinity));  // 0 where it is not finite; as a condition it is not vectorised
}

float largest_finite(std::span<const float> values) {
  uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, finite_magnitude(value));
  return std::bit_cast<float>(largest);
}

double sum_of_finite(std::span<const float> values) {
  return sum_lanes<double>(values.size(), [values](size_t i) { return static_cast<double>(std::bit_cast<float>(finite_magnitude(values[i]))); });
}

// Where the run begins among `places` possible ones.
size_t first_of_run(uint64_t step, size_t places) {
  if (step == 0) return 0;
  constexpr uint32_t kTopkStream = 0x544F504Bu;
  const uint32_t random = philox({static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), 0, 0}, {kTopkStream, 0})[0];
  return static_cast<size_t>(uint64_t{random} * places >> 32);
}

}  // namespace

TopkThresholds mstopk_thresholds(std::span<const float> values, size_t k) {
  const size_t count = values.size();
  CHECK(1 <= k && k <= count && count <= std::numeric_limits<uint32_t>::max(), "{} of {}", k, count);
  if (k == count) return {.above = 0, .from = 0, .taken = count, .reaching = count};
  Counter counter(values);
  const size_t not_finite = counter.reaching(kInfinity);
  if (not_finite > k) return {.above = kNothing, .from = kInfinity, .taken = 0, .reaching = not_finite};
  TopkThresholds t{.above = kInfinity, .from = 0, .taken = not_finite, .reaching = count};
  if (not_finite == k) return t;

  // Moves one of the two thresholds to x. Returns whether more than k reach it.
  const auto try_threshold = [&](double x) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(static_cast<float>(x));
    if (magnitude <= t.from) return true;
    if (magnitude >= t.above) return false;
    const size_t reaching = counter.reaching(magnitude);
    const bool more = reaching > k;
    (more ? t.from : t.above) = magnitude;
    (more ? t.reaching : t.taken) = reaching;
    counter.gather_if_few(t);
    return more;
  };
  double low = sum_of_finite(values) / static_cast<double>(count - not_finite);
  double high = largest_finite(values);
  if (!try_threshold(low)) high = std::exchange(low, 0.0);
  for (int n = 0; n < kHalvings && t.taken < k; ++n) {
    const double middle = low + (high - low) / 2;
    (try_threshold(middle) ? low : high) = middle;
  }
  return t;
}

size_t topk_count(double ratio, size_t count) {
  if (count == 0) return 0;
  return std::clamp<size_t>(static_cast<size_t>(std::llround(ratio * static_cast<double>(count))), 1, count);
}

namespace {

class Topk final : public Codec {
 public:
  explicit Topk(double ratio) : ratio_(ratio) { CHECK(ratio > 0 && ratio <= 1, "ratio {}", ratio); }
  std::string name() const override { return fmt::format("topk:{}", ratio_); }
  size_t encoded_bytes(size_t count) const override { return topk_count(ratio_, count) * (sizeof(float) + sizeof(uint32_t)); }

 private:
  void encode_values(std::span<const float> values, std::span<std::byte> out, uint64_t step) const override {
    const size_t k = topk_count(ratio_, values.size());
    const TopkThresholds t = mstopk_thresholds(values, k);
    const size_t run = k - t.taken;
    const size_t first = first_of_run(step, t.reaching - t.taken - run + 1);
    std::byte* const indices = out.data() + k * sizeof(float);
    size_t written = 0;
    size_t candidates = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t magnitude = magnitude_of(values[i]);
      if (magnitude < t.from) continue;
      if (magnitude < t.above) {
        const size_t place = candidates++;
        if (place < first || place >= first + run) continue;
      }
      CHECK(written < k, "more than {} elements found", k);
      const auto index = static_cast<uint32_t>(i);
      std::memcpy(out.data() + written * sizeof(float), &values[i], sizeof(float));
      std::memcpy(indices + written * sizeof(uint32_t), &index, sizeof index);
      ++written;
    }
    CHECK(written == k, "{} of {} elements found", written, k);
  }

  void decode_values(std::span<const std::byte> in, std::span<float> values) const override {
    std::fill(values.begin(), values.end(), 0.0f);
    for_each_entry(in, values, [](float& to, float value) { to = value; });
  }

  void add_values(std::span<const std::byte> in, std::span<float> sum, float weight) const override {
    for_each_entry(in, sum, [weight](float& to, float value) { to += weight * value; });
  }

  // The indices come from another rank: one that lies outside would write over foreign memory.
  template <class Put>
  void for_each_entry(std::span<const std::byte> in, std::span<float> values, Put put) const {
    const size_t k = topk_count(ratio_, values.size());
    for (size_t j = 0; j < k; ++j) {
      float value;
      uint32_t index;
      std::memcpy(&value, in.data() + j * sizeof value, sizeof value);
      std::memcpy(&index, in.data() + k * sizeof value + j * sizeof index, sizeof index);
      if (index >= values.size())
        throw CommError(fmt::format("{}: entry {} has index {} in a vector of {}: the ranks' vectors differ, or the message is damaged", name(), j,
                                    index, values.size()));
      put(values[index], value);
    }
  }

  double ratio_;
};

}  // namespace

std::unique_ptr<Codec> make_topk(double ratio) { return std::make_unique<Topk>(ratio); }

}  // namespace tutti::comm
