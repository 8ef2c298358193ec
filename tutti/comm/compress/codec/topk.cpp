#include "tutti/comm/compress/codec/topk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/shared_work.h"
#include "tutti/comm/compress/codec/lanes.h"

namespace tutti::comm {
namespace {

constexpr uint32_t kNothing = 0x80000000u;  // above every magnitude, NaN included
constexpr size_t kFew = 16384;
constexpr size_t kFlagBlock = 32;
constexpr size_t kCountedPiece = 64 << 10;  // elements that another thread may count

uint32_t magnitude_of(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu; }
uint32_t magnitude_of(uint32_t magnitude) { return magnitude; }

template <class Value>
size_t count_reaching(std::span<const Value> values, uint32_t threshold) {
  uint32_t reached = 0;
  for (const Value& value : values) reached += magnitude_of(value) >= threshold ? 1u : 0u;
  return reached;
}

size_t count_reaching(std::span<const float> values, uint32_t threshold, SharedWork* work) {
  const Pieces pieces(values.size(), 1, kCountedPiece);
  std::array<size_t, Pieces::kMost> reached{};
  SharedWork::run(work, pieces.count(), [&](size_t i) {
    reached[i] = count_reaching(values.subspan(pieces.begin(i), pieces.length(i)), threshold);
  });
  return std::accumulate(reached.begin(), reached.end(), size_t{0});
}

// Bit i is set where block[i] reaches `from`.
uint32_t reaching_bits(const float* block, uint32_t from) {
  alignas(32) uint8_t flags[kFlagBlock];
  for (size_t i = 0; i < kFlagBlock; ++i) flags[i] = magnitude_of(block[i]) >= from ? 1 : 0;
  uint32_t bits = 0;
  for (size_t byte = 0; byte < kFlagBlock / 8; ++byte)
    bits |= pack_flags(flags + 8 * byte) << (8 * byte);
  return bits;
}

// Calls found(i) for all i with a magnitude of at least `from`, ascending. A block without any only
// costs a maximum, which vectorises.
template <class Found>
void for_each_reaching(std::span<const float> values, uint32_t from, Found found) {
  const size_t whole = values.size() - values.size() % kFlagBlock;
  for (size_t begin = 0; begin < whole; begin += kFlagBlock) {
    const float* const block = &values[begin];
    uint32_t largest = 0;
    for (size_t i = 0; i < kFlagBlock; ++i) largest = std::max(largest, magnitude_of(block[i]));
    if (largest < from) continue;
    for (uint32_t bits = reaching_bits(block, from); bits != 0; bits &= bits - 1)
      found(begin + static_cast<size_t>(std::countr_zero(bits)));
  }
  for (size_t i = whole; i < values.size(); ++i)
    if (magnitude_of(values[i]) >= from) found(i);
}

// The interval of the k-th largest magnitude: k or fewer reach `above`, k or more reach `from`.
class Bisection {
 public:
  Bisection(std::span<const float> values, size_t k, SharedWork* work)
      : values_(values), k_(k),
        work_(work), t_{.above = kNothing, .from = 0, .taken = 0, .reaching = values.size()} {
    gather_if_few();
  }

  TopkThresholds run() {
    if (!gathered_) narrow_by_sample();
    while (t_.taken < k_ && t_.above - t_.from > 1)
      try_threshold(t_.from + (t_.above - t_.from) / 2);
    return t_;
  }

 private:
  // Moves one of the two thresholds to `magnitude`, if it lies between them.
  void try_threshold(uint32_t magnitude) {
    if (magnitude <= t_.from || magnitude >= t_.above) return;
    const size_t reaching =
        gathered_
            ? taken_ + count_reaching(std::span<const uint32_t>(near_, near_count_), magnitude)
            : count_reaching(values_, magnitude, work_);
    if (reaching > k_) {
      t_.from = magnitude;
      t_.reaching = reaching;
    } else {
      t_.above = magnitude;
      t_.taken = reaching;
    }
    gather_if_few();
  }

  // Copies the magnitudes between the thresholds out as soon as there are few; all later counts
  // look at these alone.
  void gather_if_few() {
    if (gathered_ || t_.reaching - t_.taken > kFew) return;
    for_each_reaching(values_, t_.from, [this](size_t i) {
      const uint32_t magnitude = magnitude_of(values_[i]);
      if (magnitude < t_.above) near_[near_count_++] = magnitude;
    });
    taken_ = t_.taken;
    gathered_ = true;
  }

  // Finds two thresholds that very likely enclose the k-th largest closely, from a sample of the
  // values: the number of sampled ones among the k largest has a standard deviation below the
  // root of its mean. A bad guess only costs time, since thresholds move by full counts.
  void narrow_by_sample() {
    const size_t stride =
        values_.size() / kFew * 2 | 1;  // odd: not in step with the channels of a layout
    size_t n = 0;
    for (size_t i = 0; i < values_.size() && n < kFew; i += stride)
      near_[n++] = magnitude_of(values_[i]);
    const double rank =
        static_cast<double>(k_) * static_cast<double>(n) / static_cast<double>(values_.size());
    const double margin = 4 * std::sqrt(rank) + 8;
    const std::span<const uint32_t> sample(near_, n);
    if (rank + margin < static_cast<double>(n))
      try_threshold(largest_of(sample, static_cast<size_t>(rank + margin)));
    if (!gathered_ && rank > margin)
      try_threshold(largest_of(sample, static_cast<size_t>(rank - margin)) + 1);
  }

  // Returns the largest magnitude that more than `rank` of the sample reach.
  static uint32_t largest_of(std::span<const uint32_t> sample, size_t rank) {
    uint32_t from = 0, above = kNothing;
    while (above - from > 1) {
      const uint32_t middle = from + (above - from) / 2;
      (count_reaching(sample, middle) > rank ? from : above) = middle;
    }
    return from;
  }

  std::span<const float> values_;
  size_t k_;
  SharedWork* work_;
  TopkThresholds t_;
  bool gathered_ = false;
  size_t taken_ = 0;  // elements above the gathered ones
  size_t near_count_ = 0;
  uint32_t near_[kFew];  // holds the sample before they are gathered
};

// Returns where the run begins among `places` possible places.
size_t first_of_run(uint64_t step, size_t places) {
  if (step == 0) return 0;
  constexpr uint32_t kTopkStream = 0x544F504Bu;
  const uint32_t random = philox(
      {static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), 0, 0}, {kTopkStream, 0})[0];
  return static_cast<size_t>(uint64_t{random} * places >> 32);
}

}  // namespace

TopkThresholds mstopk_thresholds(std::span<const float> values, size_t k, SharedWork* work) {
  const size_t count = values.size();
  CHECK(1 <= k && k <= count && count <= std::numeric_limits<uint32_t>::max(), "{} of {}", k,
        count);
  if (k == count) return {.above = 0, .from = 0, .taken = count, .reaching = count};
  return Bisection(values, k, work).run();
}

size_t topk_count(double ratio, size_t count) {
  if (count == 0) return 0;
  return std::clamp<size_t>(static_cast<size_t>(std::llround(ratio * static_cast<double>(count))),
                            1, count);
}

namespace {

class Topk final : public Codec {
 public:
  explicit Topk(double ratio) : ratio_(ratio) { CHECK(ratio > 0 && ratio <= 1, "ratio {}", ratio); }
  std::string name() const override { return fmt::format("topk:{}", ratio_); }
  size_t encoded_bytes(size_t count) const override {
    return topk_count(ratio_, count) * (sizeof(float) + sizeof(uint32_t));
  }

 private:
  void encode_values(std::span<const float> values, std::span<std::byte> out, uint64_t step,
                     SharedWork* work) const override {
    const size_t k = topk_count(ratio_, values.size());
    const TopkThresholds t = mstopk_thresholds(values, k, work);
    const size_t run = k - t.taken;
    const size_t first = first_of_run(step, t.reaching - t.taken - run + 1);
    std::byte* const indices = out.data() + k * sizeof(float);
    size_t written = 0;
    size_t candidates = 0;
    for_each_reaching(values, t.from, [&](size_t i) {
      if (magnitude_of(values[i]) < t.above) {
        const size_t place = candidates++;
        if (place < first || place >= first + run) return;
      }
      CHECK(written < k, "more than {} elements found", k);
      const auto index = static_cast<uint32_t>(i);
      std::memcpy(out.data() + written * sizeof(float), &values[i], sizeof(float));
      std::memcpy(indices + written * sizeof(uint32_t), &index, sizeof index);
      ++written;
    });
    CHECK(written == k, "{} of {} elements found", written, k);
  }

  void decode_values(std::span<const std::byte> in, std::span<float> values) const override {
    std::fill(values.begin(), values.end(), 0.0f);
    for_each_entry(in, values, [](float& to, float value) { to = value; });
  }

  void add_values(std::span<const std::byte> in, std::span<float> sum,
                  float weight) const override {
    for_each_entry(in, sum, [weight](float& to, float value) { to += weight * value; });
  }

  // The indices come from another rank: an index out of range would overwrite other memory.
  template <class Put>
  void for_each_entry(std::span<const std::byte> in, std::span<float> values, Put put) const {
    const size_t k = topk_count(ratio_, values.size());
    for (size_t j = 0; j < k; ++j) {
      float value;
      uint32_t index;
      std::memcpy(&value, in.data() + j * sizeof value, sizeof value);
      std::memcpy(&index, in.data() + k * sizeof value + j * sizeof index, sizeof index);
      if (index >= values.size())
        throw CommError(
            fmt::format("{}: entry {} has index {} in a vector of {}: the ranks' vectors differ, "
                        "or the message is damaged",
                        name(), j, index, values.size()));
      put(values[index], value);
    }
  }

  double ratio_;
};

}  // namespace

std::unique_ptr<Codec> make_topk(double ratio) { return std::make_unique<Topk>(ratio); }

}  // namespace tutti::comm
