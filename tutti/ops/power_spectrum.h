#pragma once
// The power spectrum of periodic fields: how strong their waves are at each wavelength.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// The waves of a periodic field of up to three dimensions. Wave (k1, k2, ...) has k_i periods in
/// extent i, -s_i / 2 <= k_i <= s_i / 2. Its wave number counts periods in the longest extent L:
/// |k| = sqrt(sum (k_i L / s_i)^2). Shell b holds the waves with b + 1/2 <= |k| < b + 3/2, from the
/// fundamental wave (b = 0) to the Nyquist wave of the longest extent.
struct WaveShells {
  Shape extents;  ///< 1 to 3 of them
  /// floor(L / 2), 0 where no extent is longer than 1.
  int64_t count() const;
  /// Returns the shell of the wave at `index` of a discrete Fourier transform (k_i = index_i, or
  /// index_i - s_i in the upper half); -1: none.
  int64_t shell_of(std::span<const int64_t> index) const;
};

struct PowerSpectrumAttributes {
  float floor = 1e-6f;  ///< added to each power, so that its logarithm is finite
  std::string to_string() const;
};

/// x [N, C, spatial...] -> y [N, C * shells] f32:
///   y[n, c * shells + b] = log(floor + mean over the waves of shell b of |X|^2 / P),
/// X = sum over the P positions r of x[n, c, r] exp(-2 pi i k r / s): with this factor the power of
/// white noise is its variance. A mean of |X|^2 over shells is the usual estimate of P(k) (Feldman,
/// Kaiser & Peacock 1994, without weights and without taking off shot noise). A sample is read as a
/// whole: parts and slabs of it are gathered before, and each part computes all of it.
class PowerSpectrum : public OpWith<"power_spectrum", Walk::per_sample, PowerSpectrumAttributes> {
 public:
  using OpWith::OpWith;
  const PowerSpectrumAttributes& spectrum() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  double flop(Types in, Types out) const override;
};

/// (dy, y, x) -> dx, of x's type:
///   dx[r] = 2 / P Re sum over the waves of w X exp(2 pi i k r / s),
/// w = dy exp(-y) / (waves in the shell); 0 outside of the shells.
class PowerSpectrumGrad : public NamedOp<"power_spectrum_grad", Walk::per_sample> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  double flop(Types in, Types out) const override;
};

}  // namespace tutti::ops
