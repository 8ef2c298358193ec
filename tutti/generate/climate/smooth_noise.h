#pragma once
// Has smooth random functions of the place, with mean 0 and variance about 1: cubic B-splines over
// lattices of normals, each octave twice as fine as the previous one, periodic in longitude. They
// are functions on the globe, not on a grid: any grid shows the same one.

#include <array>
#include <vector>

#include "tutti/base/numeric/rng.h"

namespace tutti::generate {

inline constexpr int kNoiseOctaves = 5;  ///< lattices of 15, 7.5, 3.75, 1.9 and 0.94 degrees

/// Says where the columns of a grid lie in the octaves' lattices: made once for all fields.
class NoiseColumns {
 public:
  explicit NoiseColumns(std::vector<double> longitudes);  ///< degrees, in [0, 360)
  int columns() const { return columns_; }

 private:
  friend class SmoothNoise;
  struct Place {
    int first;                           // first of four lattice columns
    std::array<float, 4> weight, slope;  // slope: per degree
  };
  int columns_;
  std::array<std::vector<Place>, kNoiseOctaves> places_;
};

class SmoothNoise {
 public:
  /// An octave's amplitude is `persistence` times the previous one.
  SmoothNoise(Rng& rng, double persistence);

  /// A row of values, and of derivatives per degree of latitude and of longitude.
  struct Row {
    std::vector<float> value, by_latitude, by_longitude;
  };
  /// Fills row.value for a latitude in degrees.
  void values(double latitude, const NoiseColumns& columns, Row& row) const;
  /// Fills row.value and the derivatives.
  void gradients(double latitude, const NoiseColumns& columns, Row& row) const;

  double at(double latitude, double longitude) const;

 private:
  std::array<double, kNoiseOctaves> amplitude_;
  std::array<std::vector<float>, kNoiseOctaves> lattice_;
};

}  // namespace tutti::generate
