#include "tutti/generate/climate/placement.h"

#include <algorithm>
#include <limits>

namespace tutti::generate {
namespace {

constexpr double kAir = 1.15;  // kg/m^3

// Returns the Coriolis parameter, 1/s, at a latitude's absolute value.
double coriolis(double latitude) {
  return 1.4584e-4 * std::sin(std::abs(latitude) * std::numbers::pi / 180);
}

// Returns the speed around a low, m/s, with its pressure gradient balanced by the Coriolis and
// centrifugal forces: `pull` = r / rho dp/dr, m^2/s^2.
double gradient_wind(double pull, double metres, double latitude) {
  const double half = coriolis(latitude) * metres / 2;
  return std::sqrt(pull + half * half) - half;
}

double gauss(double x, double rms) { return std::exp(-x * x / (2 * rms * rms)); }

// Is 1 in the middle, 0 with slope 0 at `reach`.
double fade(double r, double reach) {
  const double rest = 1 - r * r / (reach * reach);
  return rest * rest;
}

void add(float* pixel, ClimateChannel channel, double value) {
  pixel[channel] += static_cast<float>(value);
}

// Adds wind of `speed` around a low at (-east, -north): counter-clockwise in the northern
// hemisphere. At the lowest level it is weaker and blows 20 degrees inwards.
void add_turning_wind(float* pixel, double speed, const GeoPoint& low, double east, double north) {
  const double r = std::max(1e-6, std::hypot(east, north)), sign = low.latitude < 0 ? -1 : 1;
  const double along_east = -sign * north / r, along_north = sign * east / r;
  add(pixel, kU850, speed * along_east);
  add(pixel, kV850, speed * along_north);
  constexpr double kAlong = 0.85 * 0.94, kInward = 0.85 * 0.34;
  add(pixel, kUbot, speed * (kAlong * along_east - kInward * east / r));
  add(pixel, kVbot, speed * (kAlong * along_north - kInward * north / r));
}

int wrapped(const ClimateGrid& grid, int column) {
  return ((column % grid.columns) + grid.columns) % grid.columns;
}

// The point of a path that is nearest to a pixel.
struct Nearest {
  float square = std::numeric_limits<float>::infinity();  // squared distance, km^2
  float side = 0;                                         // distance to the left of the path, km
  float along = 0;                                        // 0 at the path's start, 1 at its end
  float east = 0, north = 0;                              // direction of the path
};

// Finds the nearest points of a path for all pixels within reach. Distances are measured in the
// plane that touches the globe at the pixel's latitude.
class NearestToPath {
 public:
  NearestToPath(const ClimateGrid& grid, const std::vector<GeoPoint>& path, double kilometres)
      : box_(box_around(grid, path[0], kilometres)) {
    for (const GeoPoint& point : path) {
      const GridBox box = box_around(grid, point, kilometres + kSegment);
      box_ = {std::min(box_.first_row, box.first_row), std::max(box_.last_row, box.last_row),
              std::min(box_.first_column, box.first_column),
              std::max(box_.last_column, box.last_column)};
    }
    nearest_.resize(static_cast<size_t>(box_.last_row - box_.first_row + 1) * width());
    for (size_t i = 0; i + 1 < path.size(); ++i)
      meet_segment(grid, path, i, box_around(grid, path[i], kilometres + kSegment));
  }

  const GridBox& box() const { return box_; }
  const Nearest& at(int row, int column) const { return nearest_[place(row, column)]; }

 private:
  static constexpr double kSegment = 100;  // km between a path's points, see Band

  size_t width() const { return static_cast<size_t>(box_.last_column - box_.first_column + 1); }
  size_t place(int row, int column) const {
    return static_cast<size_t>(row - box_.first_row) * width() +
           static_cast<size_t>(column - box_.first_column);
  }

  // Lowers the distances of a box's pixels to their distance from the segment between points i and
  // i + 1.
  void meet_segment(const ClimateGrid& grid, const std::vector<GeoPoint>& path, size_t i,
                    const GridBox& box) {
    const GeoPoint &from = path[i], &to = path[i + 1];
    for (int row = box.first_row; row <= box.last_row; ++row) {
      const double latitude = latitude_of(grid, row),
                   scale = kKilometresPerDegree * cosine_of_latitude(latitude);
      const double dx = scale * (to.longitude - from.longitude),
                   dy = kKilometresPerDegree * (to.latitude - from.latitude),
                   length = std::hypot(dx, dy);
      const double y = kKilometresPerDegree * (latitude - from.latitude);
      for (int column = box.first_column; column <= box.last_column; ++column) {
        const double x = scale * (longitude_of(grid, column) - from.longitude);
        const double t = std::clamp((x * dx + y * dy) / (length * length), 0.0, 1.0);
        const double ex = x - t * dx, ey = y - t * dy;
        const auto square = static_cast<float>(ex * ex + ey * ey);
        Nearest& found = nearest_[place(row, column)];
        if (square >= found.square) continue;
        const double along = (static_cast<double>(i) + t) / static_cast<double>(path.size() - 1);
        found = {square, static_cast<float>((dx * y - dy * x) / length), static_cast<float>(along),
                 static_cast<float>(dx / length), static_cast<float>(dy / length)};
      }
    }
  }

  GridBox box_;
  std::vector<Nearest> nearest_;
};

// Adds a band at a pixel; returns its strength there along its path.
float add_band(float* pixel, const Band& band, const Nearest& n, double reach) {
  const double d = std::sqrt(static_cast<double>(n.square)), w = band.width;
  const double ends = std::min(1.0, std::min(n.along / 0.08, (1 - n.along) / 0.15));
  const double strength = ends * ends * (3 - 2 * ends), near = fade(d, reach) * strength;
  const double moist = band.moisture * (1 - 0.45 * n.along) * gauss(d, w) * near;
  const double wind = band.wind * gauss(d, 1.5 * w) * near;
  const double poleward = band.path[0].latitude < 0 ? -n.side : n.side;
  const double front = -band.front * std::tanh(poleward / w) * gauss(d, 1.5 * w) * near;
  add(pixel, kTmq, moist);
  add(pixel, kU850, wind * n.east);
  add(pixel, kV850, wind * n.north);
  add(pixel, kUbot, 0.75 * wind * n.east);
  add(pixel, kVbot, 0.75 * wind * n.north);
  add(pixel, kTrefht, front);
  add(pixel, kT500, 0.7 * front);
  add(pixel, kPsl, -250 * gauss(d, w) * near);
  add(pixel, kPrect, 1.5e-9 * std::max(0.0, moist) * std::max(0.0, wind));
  return static_cast<float>(strength);
}

}  // namespace

GridBox box_around(const ClimateGrid& grid, const GeoPoint& centre, double kilometres) {
  const double up = kilometres / kKilometresPerDegree;
  const double farthest = std::min(89.0, std::abs(centre.latitude) + up);
  const double across = std::min(179.9, up / cosine_of_latitude(farthest));
  const auto row = [&](double latitude) { return (latitude + 90) / 180 * grid.rows - 0.5; };
  const auto column = [&](double longitude) { return longitude / 360 * grid.columns - 0.5; };
  return {std::max(0, static_cast<int>(std::floor(row(centre.latitude - up)))),
          std::min(grid.rows - 1, static_cast<int>(std::ceil(row(centre.latitude + up)))),
          static_cast<int>(std::ceil(column(centre.longitude - across))),
          static_cast<int>(std::floor(column(centre.longitude + across)))};
}

void place_cyclone(const ClimateFields& fields, const Cyclone& cyclone) {
  constexpr double kReach = 1200, kHolland = 1.3;
  for_pixels_around(fields.grid, cyclone.centre, kReach, [&](int64_t at, double x, double y) {
    float* pixel = fields.at(at);
    const double r = std::max(1.0, std::hypot(x, y)), near = fade(r, kReach);
    const double q = std::pow(cyclone.radius / r, kHolland), inside = std::exp(-q);
    const double pull = kHolland * cyclone.deficit / kAir * q * inside;
    add_turning_wind(pixel, near * gradient_wind(pull, 1000 * r, cyclone.centre.latitude),
                     cyclone.centre, x, y);
    add(pixel, kPsl, -near * cyclone.deficit * (1 - inside));
    const double core = cyclone.warm_core * gauss(r, 2 * cyclone.radius);
    add(pixel, kT500, core);
    add(pixel, kT200, 0.6 * cyclone.warm_core * gauss(r, 3 * cyclone.radius));
    add(pixel, kZ200, 15 * core);
    add(pixel, kTmq, cyclone.moisture * gauss(r, 300));
    // Two spiral arms outside the ring of the strongest wind.
    const double turns = 2 * std::atan2(y, x) + r / 90;
    const double rain = cyclone.moisture * (0.5 + cyclone.deficit / 4000) *
                        (gauss(r - cyclone.radius, 0.6 * cyclone.radius) +
                         0.25 * (1 + std::cos(turns)) * gauss(r, 250));
    add(pixel, kPrect, 1.2e-7 * rain);
  });
}

void place_low(const ClimateFields& fields, const Low& low) {
  const double reach = 2.8 * low.radius;
  for_pixels_around(fields.grid, low.centre, reach, [&](int64_t at, double x, double y) {
    float* pixel = fields.at(at);
    const double r = std::hypot(x, y), here = gauss(r, low.radius) * fade(r, reach);
    const double pull = low.deficit / kAir * (r / low.radius) * (r / low.radius) * here;
    add_turning_wind(pixel, gradient_wind(pull, 1000 * r, low.centre.latitude), low.centre, x, y);
    add(pixel, kPsl, -low.deficit * here);
    add(pixel, kT500, -low.cold_core * here);
    add(pixel, kT200, 0.5 * low.cold_core * here);
    add(pixel, kZ200, -20 * low.cold_core * here);
    // Warm and moist air comes from the equator on the low's eastern side.
    const double east = x / low.radius;
    add(pixel, kTrefht, 4 * east * here);
    add(pixel, kTmq, (2 + 6 * east) * here);
    add(pixel, kPrect, 4e-7 * std::max(0.0, 0.3 + east) * here);
  });
}

void place_patch(const ClimateFields& fields, const Patch& patch) {
  const double reach = 3 * patch.radius;
  for_pixels_around(fields.grid, patch.centre, reach, [&](int64_t at, double x, double y) {
    const double r = std::hypot(x, y), here = gauss(r, patch.radius) * fade(r, reach);
    add(fields.at(at), kTmq, patch.moisture * here);
    add(fields.at(at), kPrect, 1e-8 * patch.moisture * here);
  });
}

std::vector<BandPixel> place_band(const ClimateFields& fields, const Band& band) {
  if (band.path.size() < 3) return {};
  const double reach = 3.5 * band.width;
  const NearestToPath nearest(fields.grid, band.path, reach);
  const GridBox& box = nearest.box();
  std::vector<BandPixel> pixels;
  for (int row = box.first_row; row <= box.last_row; ++row)
    for (int column = box.first_column; column <= box.last_column; ++column) {
      const Nearest& n = nearest.at(row, column);
      if (!(n.square < reach * reach)) continue;
      const int64_t at = int64_t{row} * fields.grid.columns + wrapped(fields.grid, column);
      const float strength = add_band(fields.at(at), band, n, reach);
      pixels.push_back(
          {at, std::sqrt(n.square) / static_cast<float>(band.width), strength, n.east, n.north});
    }
  return pixels;
}

}  // namespace tutti::generate
