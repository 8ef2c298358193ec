#pragma once
// Attention's operations on rows of heads and of scores. Products are of f32, or of pairs of bf16
// (matrix_tile.h): their operands are arrays of float or of TermPair, which holds two consecutive
// terms of a sum. Private to this folder.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tutti/backend/backend.h"
#include "tutti/backend/cpu/matrix/matrix_tile.h"
#include "tutti/backend/cpu/simd/simd_math.h"
#include "tutti/backend/cpu/simd/simd_transpose.h"
#include "tutti/backend/cpu/simd/wide_bits.h"
#include "tutti/ops/sequence/attention.h"

namespace tutti::backend::attention {

using matrix::TermPair;

/// The elements in products of sequences of T: bf16 pairs, if there is an instruction that adds
/// them.
template <class T>
using ElementOf =
    std::conditional_t<std::is_same_v<T, bf16> && matrix::kFastPairs, TermPair, float>;
/// The number of terms in an element.
template <class Element>
constexpr int64_t kTerms = std::is_same_v<Element, TermPair> ? 2 : 1;
/// Returns the elements of a sum of that many terms; surplus terms of the last one are zero.
template <class Element>
constexpr int64_t elements_of(int64_t terms) {
  return matrix::parts_of(terms, kTerms<Element>);
}

constexpr int64_t padded(int64_t n) { return (n + simd::kLanes - 1) / simd::kLanes * simd::kLanes; }

/// Calls f(first) for whole vectors of [0, end).
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

/// Writes `n` terms as elements, up to a whole vector, with zeros after the last.
template <class T>
[[gnu::always_inline]] inline void put_terms(const T* from, int64_t n, float* to) {
  for_each_lanes(n, [&](int64_t d, auto lanes) {
    simd::store(to + d, simd::load(from + d, lanes), simd::AllLanes{});
  });
}
inline void put_terms(const bf16* from, int64_t n, TermPair* to) {
  const auto bytes = static_cast<size_t>(n) * sizeof(bf16),
             whole = static_cast<size_t>(padded(elements_of<TermPair>(n))) * sizeof(TermPair);
  std::memcpy(to, from, bytes);
  std::memset(reinterpret_cast<std::byte*>(to) + bytes, 0, whole - bytes);
}

/// The vectors of one head: `width` channels at each position, positions `stride` elements apart.
template <class T>
struct HeadRows {
  T* first;
  int64_t stride, width;

  T* row(int64_t position) const { return first + position * stride; }
  HeadRows from(int64_t position) const { return {row(position), stride, width}; }
  /// Reads positions [0, count) as rows of elements, `stride_to` apart.
  template <class Element>
  void read(int64_t count, Element* to, int64_t stride_to) const {
    for (int64_t i = 0; i < count; ++i, to += stride_to) put_terms(row(i), width, to);
  }
  void write(int64_t position, const float* from, float factor) const {
    for_each_lanes(width, [&](int64_t d, auto lanes) {
      simd::store(row(position) + d, factor * simd::load(from + d, lanes), lanes);
    });
  }
};

/// Writes positions as columns of panels, for sums over channels: element (d, position) at
/// (position / 16 * elements of the width + d) * 16 + position % 16; zeros after the last one.
template <class T, class Element>
void to_columns(const HeadRows<T>& rows, int64_t count, Element* panels) {
  constexpr int64_t kColumns = matrix::kColumns, kOfBlock = kColumns * kTerms<Element>;
  for (int64_t j = 0; j < count; j += kColumns) {
    const int64_t some = std::min(kColumns, count - j);
    for (int64_t d = 0; d < rows.width; d += kOfBlock) {
      const int64_t terms = std::min(kOfBlock, rows.width - d),
                    elements = elements_of<Element>(terms);
      simd::Row block[kColumns]{};
      for (int64_t i = 0; i < some; ++i) {
        Element element[kColumns];
        put_terms(rows.row(j + i) + d, terms, element);
        std::memcpy(&block[i], element, sizeof block[i]);
      }
      simd::transpose(block);
      std::memcpy(panels, block, static_cast<size_t>(elements) * sizeof block[0]);
      panels += elements * kColumns;
    }
  }
}

/// Writes channels as columns of panels, for sums over positions: element (position, d) at (d / 16
/// * elements of the count + position) * 16 + d % 16.
template <class T>
void to_panels(const HeadRows<T>& rows, int64_t count, float* panels) {
  for (int64_t i = 0; i < count; ++i)
    for_each_lanes(rows.width, [&](int64_t d, auto lanes) {
      simd::store(panels + (d / simd::kLanes * count + i) * simd::kLanes,
                  simd::load(rows.row(i) + d, lanes), simd::AllLanes{});
    });
}
template <class T>
void to_panels(const HeadRows<T>& rows, int64_t count, TermPair* panels) {
  const int64_t elements = elements_of<TermPair>(count);
  for (int64_t e = 0; e < elements; ++e) {
    const T *const first = rows.row(2 * e), *const second =
                                                2 * e + 1 < count ? first + rows.stride : nullptr;
    for_each_lanes(rows.width, [&](int64_t d, auto lanes) {
      simd::store_as(panels + (d / simd::kLanes * elements + e) * simd::kLanes,
                     matrix::interleaved(simd::load(first + d, lanes),
                                         second ? simd::load(second + d, lanes) : simd::Floats{}));
    });
  }
}

/// Returns v as a product of sequences of T uses it: rounded for bf16, also where there are no
/// pairs, so that the op is the same everywhere.
template <class T>
[[gnu::always_inline]] inline simd::Floats term_of(simd::Floats v) {
  if constexpr (std::is_same_v<T, bf16>) return simd::widen(simd::narrow(v));
  return v;
}
/// Replaces scores of a row by terms in place, vector by vector from its first on: floats in their
/// places, or pairs in the first half of the row.
template <class T>
[[gnu::always_inline]] inline void put_terms_of_row(float* row, int64_t j, simd::Floats v) {
  if constexpr (kTerms<ElementOf<T>> == 2)
    simd::store(reinterpret_cast<bf16*>(row) + j, v, simd::AllLanes{});
  else
    simd::store(row + j, term_of<T>(v), simd::AllLanes{});
}

template <class T>
float dot(const T* a, const T* b, int64_t n) {
  simd::Floats sum{};
  for_each_lanes(n, [&](int64_t d, auto lanes) {
    sum += simd::load(a + d, lanes) * simd::load(b + d, lanes);
  });
  return simd::sum(sum);
}

/// Returns exp(s - shift), and 0 for hidden scores. A score that is NaN was not hidden: it stays
/// NaN, so that a diverging network is noticed.
[[gnu::always_inline]] inline simd::Floats exp_of_seen(simd::Floats s, simd::Floats shift) {
  return simd::where_less(s, simd::splat(-std::numeric_limits<float>::max()), simd::Floats{},
                          simd::exp(s - shift));
}

/// Tells which keys a sample's queries see.
class Mask {
 public:
  /// `memory`: a float for each key, up to a whole vector.
  Mask(ops::AttentionMask kind, float* memory) : kind_(kind), numbers_(memory) {}
  /// Reads numbers below 2^24: they are compared as floats.
  void read(const int32_t* numbers, int64_t keys) {
    for (int64_t j = 0; j < padded(keys); ++j)
      numbers_[j] = j < keys ? static_cast<float>(numbers[j]) : -1.f;
  }
  /// Sets the scores of keys [seen, end), with `end` a whole vector, and of keys that the mask
  /// hides to -infinity.
  void hide(int64_t query, float* scores, int64_t seen, int64_t end) const {
    std::fill(scores + seen, scores + end, -std::numeric_limits<float>::infinity());
    if (kind_ == ops::AttentionMask::none) return;
    const simd::Floats nothing = simd::splat(-std::numeric_limits<float>::infinity());
    const simd::Floats own =
        simd::splat(kind_ == ops::AttentionMask::segments ? numbers_[query] : 0);
    for_each_vector(end, [&](int64_t j) {
      const simd::Floats number = simd::load(numbers_ + j, simd::AllLanes{});
      simd::Floats s = simd::load(scores + j, simd::AllLanes{});
      s = simd::where_less(number, simd::Floats{}, nothing, s);
      if (kind_ == ops::AttentionMask::segments) {
        s = simd::where_less(number, own, nothing, s);
        s = simd::where_less(own, number, nothing, s);
      }
      simd::store(scores + j, s, simd::AllLanes{});
    });
  }

 private:
  ops::AttentionMask kind_;
  float* numbers_;
};

/// Tells which probabilities of a head are kept, and with what factor.
class Keep {
 public:
  Keep(const ops::AttentionAttributes& a, int64_t keys)
      : threshold_(ops::keep_threshold(a.dropout)), factor_(ops::keep_factor(a.dropout)),
        salt_(a.salt), first_head_(a.first_head), keys_(keys) {}
  bool all() const { return threshold_ == 0; }
  /// Begins a sample of the batch that `args` names, and one of these heads.
  void begin(const KernelArgs& args, int64_t sample, int64_t head) {
    if (all()) return;
    key_ = ops::keep_key(
        {args.step->seed, args.step->step, args.step->replica, args.first_sample + sample, salt_},
        first_head_ + head);
  }
  /// Calls f(j, factors) for whole vectors of the keys [0, end) of a query.
  template <class F>
  void for_each(int64_t query, int64_t end, F f) const {
    for (int64_t first = 0; first < end; first += ops::kKeepKeys) {
      const WideBits bits(Purpose::dropout, key_,
                          ops::keep_block(query, first / ops::kKeepKeys, keys_));
      for (int part = 0; part < 8 && first + part * simd::kLanes < end; ++part) {
        const simd::Words own =
            (simd::load_as<simd::Words>(bits.word[part / 2]) >> (part % 2 * 16)) & 0xFFFFu;
        f(first + part * simd::kLanes,
          simd::select(own < simd::Words{} + threshold_, simd::Floats{}, simd::splat(factor_)));
      }
    }
  }

 private:
  const uint32_t threshold_;
  const float factor_;
  const uint32_t salt_;
  const int64_t first_head_, keys_;
  ops::SampleKey key_;
};

}  // namespace tutti::backend::attention
