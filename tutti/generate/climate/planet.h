#pragma once
// Describes the planet of the generated climate and its mean weather: one planet for all seeds and
// samples, as there is one Earth. Latitudes and longitudes in degrees.

#include "tutti/generate/climate/smooth_noise.h"

namespace tutti::generate {

/// The averages along a parallel, at sea level. `season` is -1 in northern winter, 1 in northern
/// summer: the belts follow the sun by up to 8 degrees.
struct ZonalClimate {
  double tmq;              ///< kg/m^2
  double u850;             ///< m/s
  double psl;              ///< Pa
  double t2m, t500, t200;  ///< K
  double z200;             ///< m
};
ZonalClimate zonal_climate(double latitude, double season);

class Planet {
 public:
  Planet();

  /// Returns the height of the ground in m, 0 at sea, from the relief's noise.
  static float height(double latitude, float relief);
  /// Returns the noise of the relief.
  const SmoothNoise& relief() const { return relief_; }
  bool is_sea(double latitude, double longitude) const;

 private:
  SmoothNoise relief_;
};

/// Returns the one planet, made at the first call.
const Planet& planet();

}  // namespace tutti::generate
