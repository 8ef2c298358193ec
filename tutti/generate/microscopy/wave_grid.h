#pragma once
// Has periodic square fields of complex numbers, and the atoms of a crystal on them. Lengths are in
// Angstrom; the origin is at index 0, and the second half of the indices are negative places.

#include <complex>
#include <memory>
#include <span>
#include <vector>

#include "tutti/base/numeric/fourier.h"
#include "tutti/generate/microscopy/crystals.h"

namespace tutti::generate {

/// The memory of one field [side][side], y outermost, zero at first.
class WaveField {
 public:
  explicit WaveField(int64_t elements);

  std::complex<float>* data() { return reinterpret_cast<std::complex<float>*>(floats_.get()); }
  const std::complex<float>* data() const {
    return reinterpret_cast<const std::complex<float>*>(floats_.get());
  }
  std::complex<float>& operator[](int64_t i) { return data()[i]; }
  std::complex<float> operator[](int64_t i) const { return data()[i]; }
  int64_t elements() const { return elements_; }
  void clear();

 private:
  int64_t elements_;
  std::unique_ptr<float, FourierPlans::Free> floats_;
};

/// Multiplies complex numbers without C++'s checks for infinities, which cost more than the
/// product.
inline std::complex<float> product(std::complex<float> a, std::complex<float> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// A square with `side` positions along each axis and edge `box`. Fields may hold waves up to
/// `band` times the greatest frequency, so that products of two do not alias. Several threads may
/// call it.
class WaveGrid {
 public:
  static constexpr double kBand = 2.0 / 3;

  WaveGrid(int side, double box, double band = kBand);

  int side() const { return side_; }
  double box() const { return box_; }
  double step() const { return box_ / side_; }
  int64_t elements() const { return int64_t{side_} * side_; }
  /// Returns the frequency of a mode's index along an axis.
  double frequency(int i) const { return (2 * i < side_ ? i : i - side_) / box_; }
  double square_frequency(int row, int column) const {
    return frequency(row) * frequency(row) + frequency(column) * frequency(column);
  }
  bool in_band(int row, int column) const {
    return square_frequency(row, column) <= limit_ * limit_;
  }

  void to_modes(WaveField& field) const { fourier_.to_modes(field.data()); }    ///< plain sums
  void to_values(WaveField& field) const { fourier_.to_values(field.data()); }  ///< plain sums

 private:
  int side_;
  double box_, limit_;
  ComplexFourier fourier_;
};

/// The pose of a crystal in the box: its cell's corner at (x, y), its a-axis turned by `azimuth`
/// radians, the in-plane edges longer by the share `strain`.
struct CrystalPose {
  double x = 0, y = 0, azimuth = 0, strain = 0;
};

struct PlacedAtom {
  int element = 0;
  double x = 0, y = 0;  ///< within half a box of the origin
  double strength = 0;  ///< factor in structure_modes()
};

/// Returns the atoms of slice `layer` of the cell that lie in the box, in rows of cells; of all
/// slices for -1. The seam of the box cuts through the lattice.
std::vector<PlacedAtom> atoms_in_box(const Crystal& crystal, int layer, const CrystalPose& pose,
                                     double box);

/// Does modes[k] += factor[k] * sum of strength exp(-2 pi i k r) over the atoms, within the band.
/// `factor` has a value for each mode.
void add_structure(const WaveGrid& grid, std::span<const PlacedAtom> atoms,
                   std::span<const float> factor, WaveField& modes);

}  // namespace tutti::generate
