#pragma once
// What attention does with rows of heads and of scores. Private to attention.cpp.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tutti/backend/backend.h"
#include "tutti/backend/cpu/matrix_tile.h"
#include "tutti/backend/cpu/simd_math.h"
#include "tutti/backend/cpu/wide_bits.h"
#include "tutti/ops/attention.h"

namespace tutti::attention {

/// Queries of a block: their scores of 1024 keys are 112 KiB with AVX-512.
constexpr int64_t kQueryRows = matrix::kMostRows * (TUTTI_AVX512 ? 2 : 4);

constexpr int64_t padded(int64_t n) { return (n + simd::kLanes - 1) / simd::kLanes * simd::kLanes; }

/// f(first) for whole vectors of [0, end).
template <class F>
[[gnu::always_inline]] inline void for_each_vector(int64_t end, F f) {
  for (int64_t j = 0; j < end; j += simd::kLanes) f(j);
}

/// Calls f(first, lanes) for `n` elements.
template <class F>
[[gnu::always_inline]] inline void for_each_lanes(int64_t n, F f) {
  int64_t d = 0;
  for (; d + simd::kLanes <= n; d += simd::kLanes) f(d, simd::AllLanes{});
  if (d < n) f(d, simd::SomeLanes{static_cast<int>(n - d)});
}

/// The vectors of one head: `width` channels at each position, positions `stride` elements apart.
template <class T>
struct HeadRows {
  T* first;
  int64_t stride, width;

  /// Positions [from, from + count) times `factor`, as rows of `row` floats: zeros behind the
  /// width.
  void read(int64_t from, int64_t count, float factor, float* to, int64_t row) const {
    for (int64_t i = 0; i < count; ++i, to += row)
      for_each_lanes(width, [&](int64_t d, auto lanes) {
        simd::store(to + d, factor * simd::load(first + (from + i) * stride + d, lanes),
                    simd::AllLanes{});
      });
  }
  void write(int64_t position, const float* from, float factor) const {
    for_each_lanes(width, [&](int64_t d, auto lanes) {
      simd::store(first + position * stride + d, factor * simd::load(from + d, lanes), lanes);
    });
  }
};

/// Positions as columns of panels: element (d, position) at
/// (position / 16 * width + d) * 16 + position % 16; zeros behind the last one.
template <class T>
void to_columns(const HeadRows<T>& rows, int64_t count, float* panels) {
  constexpr int64_t kColumns = matrix::kColumns;
  for (int64_t j = 0; j < count; j += kColumns, panels += rows.width * kColumns) {
    const int64_t some = std::min(kColumns, count - j);
    for (int64_t d = 0; d < rows.width; ++d) {
      float column[kColumns] = {};
      for (int64_t i = 0; i < some; ++i)
        column[i] = static_cast<float>(rows.first[(j + i) * rows.stride + d]);
      simd::store(panels + d * kColumns, simd::load(column, simd::AllLanes{}), simd::AllLanes{});
    }
  }
}

/// Channels as columns of panels: element (position, d) at (d / 16 * count + position) * 16 + d
/// % 16.
template <class T>
void to_panels(const HeadRows<T>& rows, int64_t count, float* panels) {
  for (int64_t i = 0; i < count; ++i)
    for_each_lanes(rows.width, [&](int64_t d, auto lanes) {
      simd::store(panels + (d / simd::kLanes * count + i) * simd::kLanes,
                  simd::load(rows.first + i * rows.stride + d, lanes), simd::AllLanes{});
    });
}

inline float dot(const float* a, const float* b, int64_t padded_width) {
  simd::Floats sum{};
  for_each_vector(padded_width, [&](int64_t d) {
    sum += simd::load(a + d, simd::AllLanes{}) * simd::load(b + d, simd::AllLanes{});
  });
  return simd::sum(sum);
}

/// exp(s - shift), and 0 for what was hidden. A score that is NaN was not: it stays NaN, so that a
/// diverging network is seen.
[[gnu::always_inline]] inline simd::Floats exp_of_seen(simd::Floats s, simd::Floats shift) {
  return simd::where_less(s, simd::splat(-std::numeric_limits<float>::max()), simd::Floats{},
                          simd::exp(s - shift));
}

/// Which keys a sample's queries see.
class Mask {
 public:
  /// `memory`: a float for each key, up to a whole vector.
  Mask(AttentionMask kind, float* memory) : kind_(kind), numbers_(memory) {}
  /// Numbers below 2^24: they are compared as floats.
  void read(const int32_t* numbers, int64_t keys) {
    for (int64_t j = 0; j < padded(keys); ++j)
      numbers_[j] = j < keys ? static_cast<float>(numbers[j]) : -1.f;
  }
  /// -infinity for the keys [seen, end), `end` a whole vector, and for those that the mask hides.
  void hide(int64_t query, float* scores, int64_t seen, int64_t end) const {
    std::fill(scores + seen, scores + end, -std::numeric_limits<float>::infinity());
    if (kind_ == AttentionMask::none) return;
    const simd::Floats nothing = simd::splat(-std::numeric_limits<float>::infinity());
    const simd::Floats own = simd::splat(kind_ == AttentionMask::segments ? numbers_[query] : 0);
    for_each_vector(end, [&](int64_t j) {
      const simd::Floats number = simd::load(numbers_ + j, simd::AllLanes{});
      simd::Floats s = simd::load(scores + j, simd::AllLanes{});
      s = simd::where_less(number, simd::Floats{}, nothing, s);
      if (kind_ == AttentionMask::segments) {
        s = simd::where_less(number, own, nothing, s);
        s = simd::where_less(own, number, nothing, s);
      }
      simd::store(scores + j, s, simd::AllLanes{});
    });
  }

 private:
  AttentionMask kind_;
  float* numbers_;
};

/// Which probabilities of a head are kept, and by what factor.
class Keep {
 public:
  Keep(const AttentionAttributes& a, int64_t keys)
      : threshold_(keep_threshold(a.dropout)), factor_(keep_factor(a.dropout)), salt_(a.salt),
        first_head_(a.first_head), keys_(keys) {}
  bool all() const { return threshold_ == 0; }
  /// Of a sample of the batch that `args` names, and a head of these.
  void begin(const KernelArgs& args, int64_t sample, int64_t head) {
    if (all()) return;
    key_ = keep_key(
        {args.step->seed, args.step->step, args.step->replica, args.first_sample + sample, salt_},
        first_head_ + head);
  }
  /// f(j, factors) for whole vectors of the keys [0, end) of a query.
  template <class F>
  void for_each(int64_t query, int64_t end, F f) const {
    for (int64_t first = 0; first < end; first += kKeepKeys) {
      const WideBits bits(Purpose::dropout, key_, keep_block(query, first / kKeepKeys, keys_));
      for (int part = 0; part < 8 && first + part * simd::kLanes < end; ++part) {
        float factors[simd::kLanes];
        for (int i = 0; i < simd::kLanes; ++i) {
          const uint32_t own = bits.word[part / 2][i] >> (part % 2 * 16) & 0xFFFF;
          factors[i] = own < threshold_ ? 0.f : factor_;
        }
        f(first + part * simd::kLanes, simd::load(factors, simd::AllLanes{}));
      }
    }
  }

 private:
  const uint32_t threshold_;
  const float factor_;
  const uint32_t salt_;
  const int64_t first_head_, keys_;
  SampleKey key_;
};

}  // namespace tutti::attention
