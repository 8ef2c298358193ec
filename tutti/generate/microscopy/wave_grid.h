#pragma once
// Periodic square fields of complex numbers, and what a crystal looks like on them. Lengths are in
// Angstrom; the origin is at index 0, and the second half of the indices are negative places.

#include <complex>
#include <memory>
#include <span>
#include <vector>

#include "tutti/base/numeric/fourier.h"
#include "tutti/generate/microscopy/crystals.h"

namespace tutti::data {

/// Memory of one field [side][side], y outermost. Zeros at first.
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

/// Products of complex numbers without C++'s care for infinities, which costs more than they.
inline std::complex<float> product(std::complex<float> a, std::complex<float> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// A square of `side` positions each way and the edge `box`. Fields may hold waves up to `band` of
/// the greatest frequency, so that products of two do not fold back. Calls may run on several
/// threads.
class WaveGrid {
 public:
  static constexpr double kBand = 2.0 / 3;

  WaveGrid(int side, double box, double band = kBand);

  int side() const { return side_; }
  double box() const { return box_; }
  double step() const { return box_ / side_; }
  int64_t elements() const { return int64_t{side_} * side_; }
  /// Of an index of a field's modes, along an axis.
  double frequency(int i) const { return (2 * i < side_ ? i : i - side_) / box_; }
  double square_frequency(int row, int column) const {
    return frequency(row) * frequency(row) + frequency(column) * frequency(column);
  }
  bool in_band(int row, int column) const {
    return square_frequency(row, column) <= limit_ * limit_;
  }

  void to_modes(WaveField& field) const { fourier_.to_modes(field.data()); }    ///< sums
  void to_values(WaveField& field) const { fourier_.to_values(field.data()); }  ///< sums

 private:
  int side_;
  double box_, limit_;
  ComplexFourier fourier_;
};

/// How a crystal lies in the box: its cell's corner at (x, y), its a-axis turned by `azimuth`
/// radians, the edges in the plane longer by `strain` of their length.
struct CrystalPose {
  double x = 0, y = 0, azimuth = 0, strain = 0;
};

struct PlacedAtom {
  int element = 0;
  double x = 0, y = 0;  ///< within half a box of the origin
  double strength = 0;  ///< what structure_modes() multiplies it with
};

/// The atoms of slice `layer` of the cell that lie in the box, in rows of cells; of all slices for
/// -1. The seam of the box cuts through the lattice.
std::vector<PlacedAtom> atoms_in_box(const Crystal& crystal, int layer, const CrystalPose& pose,
                                     double box);

/// modes[k] += factor[k] * sum of strength exp(-2 pi i k r) over the atoms, within the band.
/// `factor` has a value for each mode.
void add_structure(const WaveGrid& grid, std::span<const PlacedAtom> atoms,
                   std::span<const float> factor, WaveField& modes);

}  // namespace tutti::data
