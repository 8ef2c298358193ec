#pragma once
// Draws the weather of a sample before any field is filled.

#include <vector>

#include "tutti/base/numeric/rng.h"

namespace tutti::generate {

struct GeoPoint {
  double latitude, longitude;  ///< degrees; a longitude may lie outside [0, 360)
};

/// A tropical cyclone, or, if weak, a tropical depression: Holland's profile (1980, MWR 108, 1212)
/// p(r) = p_centre + deficit exp(-(radius / r)^B).
struct Cyclone {
  GeoPoint centre;
  double deficit;    ///< pressure deficit, Pa
  double radius;     ///< radius of the strongest wind, km
  double warm_core;  ///< K at 500 hPa
  double moisture;   ///< kg/m^2 above its surroundings
};

/// A low of the mid-latitudes; cold aloft.
struct Low {
  GeoPoint centre;
  double deficit;    ///< Pa
  double radius;     ///< km, rms of a Gaussian
  double cold_core;  ///< K at 500 hPa
};

/// A band along a path of points 100 km apart: an atmospheric river if it is moist, windy and long;
/// otherwise a moist band, or a dry streak of wind.
struct Band {
  std::vector<GeoPoint> path;
  double width;     ///< km, rms of a Gaussian
  double moisture;  ///< kg/m^2 at its equatorward end
  double wind;      ///< m/s along the path
  double front;     ///< K warmer on the equatorward side
  bool river;       ///< whether it may be labelled
};

/// A moist patch without wind.
struct Patch {
  GeoPoint centre;
  double radius;    ///< km
  double moisture;  ///< kg/m^2
};

struct Weather {
  double season;  ///< see zonal_climate
  std::vector<Cyclone> cyclones;
  std::vector<Low> lows;
  std::vector<Band> bands;
  std::vector<Patch> patches;
};

Weather draw_weather(Rng& rng);

}  // namespace tutti::generate
