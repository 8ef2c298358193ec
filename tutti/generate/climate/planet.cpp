#include "tutti/generate/climate/planet.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tutti::generate {
namespace {

constexpr float kShore = 0.4f;  // relief above it is land: a third of the globe

double bell(double x, double centre, double width) {
  const double t = (x - centre) / width;
  return std::exp(-t * t);
}

SmoothNoise relief_noise() {
  Rng rng(0, Purpose::generate, 0x706c616e6574);  // its own stream, used by no data set
  return SmoothNoise(rng, 0.55);
}

}  // namespace

ZonalClimate zonal_climate(double latitude, double season) {
  const double shifted = latitude - 8 * season, away = std::abs(shifted);
  const double sine = std::sin(shifted * std::numbers::pi / 180), square = sine * sine;
  ZonalClimate zonal;
  zonal.tmq = 5.5 + 47 * bell(shifted, 0, 27);
  zonal.u850 = 11 * bell(away, 46, 13) - 7 * bell(away, 12, 10) - 2 * bell(away, 78, 10);
  const double polar_low = latitude < 0 ? 2200 : 1100;
  zonal.psl = 101300 + 650 * bell(away, 31, 11) - 400 * bell(shifted, 0, 12) -
              polar_low * bell(std::abs(latitude), 64, 12);
  zonal.t2m = 302 - 45 * square;
  zonal.t500 = 270 - 36 * square;
  zonal.t200 = 219 - 13 * square + 9 * season * std::sin(latitude * std::numbers::pi / 180);
  zonal.z200 = 12560 - 1720 * square;
  return zonal;
}

Planet::Planet() : relief_(relief_noise()) {}

float Planet::height(double latitude, float relief) {
  const float above = std::max(0.0f, relief - kShore);
  const auto south = static_cast<float>(1 / (1 + std::exp((latitude + 70) / 2)));
  const float height = std::min(5500.0f, 700 * above * std::sqrt(above)) * (1 - south) +
                       south * (2300 + 250 * relief);
  return height < 1 ? 0 : height;
}

bool Planet::is_sea(double latitude, double longitude) const {
  return relief_.at(latitude, longitude) < kShore;
}

const Planet& planet() {
  static const Planet one;
  return one;
}

}  // namespace tutti::generate
