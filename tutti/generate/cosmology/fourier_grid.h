#pragma once
// Has periodic fields on a cubic grid and their Fourier transforms (base/numeric/fourier.h).

#include <complex>
#include <cstdint>
#include <memory>

#include "tutti/base/numeric/fourier.h"

namespace tutti::generate {

/// The memory of one field: real values [side][side][row], where only the first `side` of a row are
/// used, or the modes [side][side][row / 2] of the same field. row = 2 (side / 2 + 1), so that a
/// transform works in place. Not initialised.
class GridField {
 public:
  explicit GridField(int side);

  float* values() { return values_.get(); }
  const float* values() const { return values_.get(); }
  std::complex<float>* modes() { return reinterpret_cast<std::complex<float>*>(values_.get()); }
  const std::complex<float>* modes() const {
    return reinterpret_cast<const std::complex<float>*>(values_.get());
  }

 private:
  struct Free {
    void operator()(float* values) const;
  };
  std::unique_ptr<float[], Free> values_;
};

/// The transforms for one side length. Several threads may run them at once on different fields.
class FourierGrid {
 public:
  explicit FourierGrid(int side);  ///< ConfigError for less than 2

  int side() const { return side_; }
  int row() const { return 2 * (side_ / 2 + 1); }
  int64_t cells() const { return int64_t{side_} * side_ * side_; }
  int64_t modes() const { return int64_t{side_} * side_ * (row() / 2); }

  /// Returns the wave number of an index along an axis, in units of 2 pi / box: 0 ... side / 2,
  /// then the negative ones.
  int wave(int i) const { return 2 * i <= side_ ? i : i - side_; }
  /// Does the same for an odd derivative: 0 for the wave of two cells, whose derivative vanishes at
  /// every cell.
  int odd_wave(int i) const { return 2 * i == side_ ? 0 : wave(i); }

  /// Sets modes[k] = sum of values[x] exp(-i k x).
  void to_modes(GridField& field) const { fourier_.to_modes(field.values()); }
  /// Sets values[x] = sum of modes[k] exp(i k x), without 1 / side^3. Overwrites the field's modes.
  void to_values(GridField& field) const { fourier_.to_values(field.values()); }

 private:
  int side_;
  RealFourier fourier_;
};

}  // namespace tutti::generate
