#pragma once
// exp, log, tanh, sigmoid and erf of sixteen floats. Errors are a few units in the last place for
// exp and log, below 3e-7 absolute otherwise.

#include "tutti/backend/cpu/simd/simd.h"

namespace tutti::backend::simd {

/// exp by range reduction to [-ln 2 / 2, ln 2 / 2] and a polynomial (coefficients: Cephes' expf).
/// Saturates outside [-87.3, 88.3]; NaN stays NaN.
inline Floats exp(Floats x) {
  x = lesser_of(splat(88.3f), greater_of(splat(-87.3f), x));
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
#if TUTTI_AVX512
  return reinterpret_cast<Floats>(
      _mm512_maskz_scalef_ps(kAll, reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(n)));
#else
  const Words power = (bits_of(shifted) - 0x4B400000u + 127u) << 23;
  return p * floats_of(power);
#endif
}

/// Natural logarithm of positive normal numbers and infinity, by a polynomial (coefficients:
/// Cephes' logf) on [sqrt(1/2), sqrt(2)]. NaN stays NaN.
inline Floats log(Floats x) {
  constexpr uint32_t kRoot = 0x3F3504F3u, kOne = 0x3F800000u;  // bits of sqrt(1/2) and 1
  const Words biased = (bits_of(x) - kRoot + kOne) >> 23;      // the exponent, plus 127
  const Floats n = floats_of(biased | 0x4B000000u) - (8388608.f + 127.f);  // 2^23 + an integer
  const Floats f = floats_of(bits_of(x) - ((biased - 127u) << 23)) - 1.f, z = f * f;
  Floats p = splat(7.0376836292e-2f);
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const Floats r = f + (p * f * z - 2.12194440e-4f * n - 0.5f * z) + 0.693359375f * n;
  return select(x < splat(__builtin_inff()), r, x);
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

}  // namespace tutti::backend::simd
