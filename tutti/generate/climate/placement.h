#pragma once
// Places events into the fields of a sample.

#include <cmath>
#include <numbers>
#include <vector>

#include "tutti/generate/climate/climate.h"
#include "tutti/generate/climate/events.h"

namespace tutti::generate {

/// The fields[rows][columns][16] of a grid.
struct ClimateFields {
  ClimateGrid grid;
  float* values;
  float* at(int64_t pixel) const { return values + pixel * kClimateChannels; }
};

/// Returns the degrees of a grid's row or column; columns may lie outside the grid.
inline double latitude_of(const ClimateGrid& grid, int row) {
  return -90 + 180 * (row + 0.5) / grid.rows;
}
inline double longitude_of(const ClimateGrid& grid, int column) {
  return 360 * (column + 0.5) / grid.columns;
}
inline double cosine_of_latitude(double latitude) {
  return std::cos(latitude * std::numbers::pi / 180);
}
inline constexpr double kKilometresPerDegree = 111.2;

/// The rows and columns around a place; columns are not wrapped, so they may lie outside the grid.
struct GridBox {
  int first_row, last_row, first_column, last_column;
};
GridBox box_around(const ClimateGrid& grid, const GeoPoint& centre, double kilometres);

/// Calls f(pixel, east, north) for the pixels nearer than `kilometres` to `centre`, with their
/// offset from it in km, in the plane that touches the globe at the pixel's latitude.
void for_pixels_around(const ClimateGrid& grid, const GeoPoint& centre, double kilometres,
                       const auto& f) {
  const GridBox box = box_around(grid, centre, kilometres);
  for (int row = box.first_row; row <= box.last_row; ++row) {
    const double latitude = latitude_of(grid, row),
                 north = kKilometresPerDegree * (latitude - centre.latitude),
                 cosine = cosine_of_latitude(latitude);
    for (int column = box.first_column; column <= box.last_column; ++column) {
      const double east =
          kKilometresPerDegree * cosine * (longitude_of(grid, column) - centre.longitude);
      if (east * east + north * north >= kilometres * kilometres) continue;
      const int wrapped = ((column % grid.columns) + grid.columns) % grid.columns;
      f(int64_t{row} * grid.columns + wrapped, east, north);
    }
  }
}

/// A pixel near a band: its distance from the path in units of the width, the strength of the band
/// there (0 at its ends, 1 along most of it), and the path's direction.
struct BandPixel {
  int64_t pixel;
  float offset, strength, east, north;
};

void place_cyclone(const ClimateFields& fields, const Cyclone& cyclone);
void place_low(const ClimateFields& fields, const Low& low);
void place_patch(const ClimateFields& fields, const Patch& patch);
std::vector<BandPixel> place_band(const ClimateFields& fields, const Band& band);

}  // namespace tutti::generate
