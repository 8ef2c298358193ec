#pragma once
// The logits of one position as a row of memory, and the sums over them in losses over a
// vocabulary.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tutti/backend/cpu/simd/simd_math.h"
#include "tutti/ops/sequence/token_loss.h"

namespace tutti::backend {

/// The logits of one position.
template <class T>
struct LogitRow {
  using Floats = simd::Floats;
  using AllLanes = simd::AllLanes;
  using SomeLanes = simd::SomeLanes;
  static constexpr int kLanes = simd::kLanes;

  const T* x;
  int64_t count;

  float greatest() const {
    const int64_t whole = count / kLanes * kLanes;
    float top = static_cast<float>(x[0]);
    if (whole > 0) {
      Floats tops = simd::load(x, AllLanes{});
      for (int64_t k = kLanes; k < whole; k += kLanes)
        tops = simd::greater_of(simd::load(x + k, AllLanes{}), tops);
      float lanes[kLanes];
      simd::store(lanes, tops, AllLanes{});
      top = *std::max_element(lanes, lanes + kLanes);
    }
    for (int64_t k = whole; k < count; ++k) top = std::max(top, static_cast<float>(x[k]));
    return top;
  }
  /// Returns the sum of f(x); missing lanes of the last vector do not count.
  template <class F>
  float sum(F f) const {
    Floats a{}, b{};
    int64_t k = 0;
    for (; k + 2 * kLanes <= count; k += 2 * kLanes) {
      a += f(simd::load(x + k, AllLanes{}));
      b += f(simd::load(x + k + kLanes, AllLanes{}));
    }
    for (; k < count; k += kLanes) {
      const int some = static_cast<int>(std::min<int64_t>(kLanes, count - k));
      a += some == kLanes ? f(simd::load(x + k, AllLanes{}))
                          : simd::first_lanes(f(simd::load(x + k, SomeLanes{some})), some);
    }
    return simd::sum(a + b);
  }
  float log_sum() const {
    const float top = greatest();
    return top + std::log(sum([top](Floats v) { return simd::exp(v - top); }));
  }
};

/// The gradient of the positions' losses by their logits: `factor` multiplies a position's whole
/// loss, `even` is label smoothing's part for each token.
struct LogitGradient {
  float factor, even, smoothing;

  /// Returns the gradient for losses over that many tokens, divided by the count of positions.
  static LogitGradient of(const ops::TokenLossAttributes& loss, float count, int64_t vocabulary) {
    const float factor = loss.scale / count;
    return {.factor = factor,
            .even = factor * loss.label_smoothing / static_cast<float>(vocabulary),
            .smoothing = loss.label_smoothing};
  }

  /// Writes the gradient of a row whose position has this logarithm of the sum over all tokens;
  /// `label` is an index in the row, -1: another row has it. `dx` may be the row's own memory.
  template <class T>
  void write(const LogitRow<T>& row, float log_sum, int64_t label, T* dx) const {
    const float of_label = label >= 0 ? static_cast<float>(row.x[label]) : 0;
    const auto gradient = [&](simd::Floats v) { return factor * simd::exp(v - log_sum) - even; };
    int64_t k = 0;
    for (; k + simd::kLanes <= row.count; k += simd::kLanes)
      simd::store(dx + k, gradient(simd::load(row.x + k, simd::AllLanes{})), simd::AllLanes{});
    if (const simd::SomeLanes rest{static_cast<int>(row.count - k)}; rest.n > 0)
      simd::store(dx + k, gradient(simd::load(row.x + k, rest)), rest);
    // Computed in f32: p - 1 of a bf16 p near 1 would be lost.
    if (label >= 0)
      dx[label] = static_cast<T>(factor * (std::exp(of_label - log_sum) - (1 - smoothing)) - even);
  }
};

}  // namespace tutti::backend
