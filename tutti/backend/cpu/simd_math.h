#pragma once
// exp, tanh, sigmoid and erf of sixteen floats. Errors are a few units in the last place for exp,
// below 3e-7 absolute otherwise.

#include "tutti/backend/cpu/simd.h"

namespace tutti::simd {

/// exp by range reduction to [-ln 2 / 2, ln 2 / 2] and a polynomial (coefficients: Cephes' expf).
/// Saturates outside
/// [-87.3, 88.3]; NaN stays NaN.
inline Floats exp(Floats x) {
  x = where_less(x, splat(-87.3f), splat(-87.3f), x);
  x = where_less(splat(88.3f), x, splat(88.3f), x);
  const Floats shifted =
      x * 1.44269504f + 12582912.f;  // 1.5 * 2^23: the sum's low bits hold the rounded quotient
  const Floats n = shifted - 12582912.f;
  const Floats r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Floats p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.f;
  const Words power = (bits_of(shifted) - 0x4B400000u + 127u) << 23;
  return p * floats_of(power);
}

inline Floats sigmoid(Floats x) { return 1.f / (1.f + exp(-x)); }

inline Floats abs(Floats x) { return floats_of(bits_of(x) & 0x7FFFFFFFu); }

inline Floats tanh(Floats x) {
  const Floats t = exp(-2.f * abs(x)), far = (1.f - t) / (1.f + t);
  const Floats x2 = x * x, near = x * (1.f + x2 * (-1.f / 3 + x2 * (2.f / 15 - x2 * (17.f / 315))));
  return where_less(abs(x), splat(0.25f), near, where_less(x, Floats{}, -far, far));
}

/// Abramowitz and Stegun, 7.1.26.
inline Floats erf(Floats x) {
  const Floats t = 1.f / (1.f + 0.3275911f * abs(x));
  const Floats p =
      t * (0.254829592f +
           t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const Floats far = 1.f - p * exp(-x * x);
  return where_less(x, Floats{}, -far, far);
}

}  // namespace tutti::simd
