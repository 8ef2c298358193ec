#pragma once
// The logits of one position as a row of memory: what the kernels of losses over a vocabulary sum
// up of them.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tutti/backend/cpu/simd_math.h"

namespace tutti {

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
      for (int64_t k = kLanes; k < whole; k += kLanes) {
        const Floats v = simd::load(x + k, AllLanes{});
        tops = simd::where_less(tops, v, v, tops);
      }
      float lanes[kLanes];
      simd::store(lanes, tops, AllLanes{});
      top = *std::max_element(lanes, lanes + kLanes);
    }
    for (int64_t k = whole; k < count; ++k) top = std::max(top, static_cast<float>(x[k]));
    return top;
  }
  /// Sum of f(x): of the last vector's missing lanes nothing.
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

}  // namespace tutti
