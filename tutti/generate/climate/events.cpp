#include "tutti/generate/climate/events.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/generate/climate/planet.h"

namespace tutti::generate {
namespace {

constexpr double kRadians = std::numbers::pi / 180, kKilometres = 111.2;  // kilometres per degree

double drawn(Rng& rng, double low, double high) { return low + (high - low) * rng.uniform(); }

// Draws a hemisphere, -1 or 1; the northern one with this probability.
double hemisphere(Rng& rng, double northern) { return rng.uniform() < northern ? 1 : -1; }

// Draws a place in a belt of latitudes; over the sea, if eight tries find one.
GeoPoint at_sea(Rng& rng, double sign, double low, double high) {
  GeoPoint point{};
  for (int i = 0; i < 8; ++i) {
    point = {sign * drawn(rng, low, high), drawn(rng, 0, 360)};
    if (planet().is_sea(point.latitude, point.longitude)) break;
  }
  return point;
}

Cyclone draw_cyclone(Rng& rng, double season, bool weak) {
  // In the height of a hemisphere's summer, nine of ten lie there.
  const double sign = hemisphere(rng, 0.5 + 0.4 * season);
  const GeoPoint centre = at_sea(rng, sign, 8, 33);
  const double deficit = weak ? drawn(rng, 300, 800) : 2000 + 5500 * std::pow(rng.uniform(), 1.5);
  return {centre, deficit, drawn(rng, 50, 110),
          weak ? drawn(rng, 0, 1) : 1.5 + deficit / 1000 * drawn(rng, 0.7, 1.2),
          drawn(rng, 10, 22)};
}

Low draw_low(Rng& rng, double sign) {
  // One in five is a subtropical low, in the belt of cyclones.
  const bool subtropical = rng.uniform() < 0.2;
  const double latitude = subtropical ? drawn(rng, 24, 38) : drawn(rng, 38, 60);
  return {{sign * latitude, drawn(rng, 0, 360)},
          subtropical ? drawn(rng, 800, 2000) : drawn(rng, 1000, 4500),
          subtropical ? drawn(rng, 220, 420) : drawn(rng, 350, 850),
          drawn(rng, 2, 7)};
}

// Draws a path from `start` at `heading` degrees north of east in the northern hemisphere (south of
// east in the southern one), which turns by `turn` degrees in 1000 km, and meanders.
std::vector<GeoPoint> draw_path(Rng& rng, GeoPoint start, double heading, double turn,
                                double length) {
  constexpr double kStep = 100;
  const double sign = start.latitude < 0 ? -1 : 1;
  const double swing = drawn(rng, 5, 25), wave = drawn(rng, 1500, 3500),
               phase = drawn(rng, 0, 6.28);
  std::vector<GeoPoint> path = {start};
  for (double gone = 0; gone < length; gone += kStep) {
    const double angle = (heading + turn * gone / 1000 +
                          swing * std::sin(phase + 2 * std::numbers::pi * gone / wave)) *
                         kRadians;
    GeoPoint next = path.back();
    next.longitude += kStep * std::cos(angle) / (kKilometres * std::cos(next.latitude * kRadians));
    next.latitude += sign * kStep * std::sin(angle) / kKilometres;
    if (std::abs(next.latitude) > 68 || std::abs(next.latitude) < 8) break;
    path.push_back(next);
  }
  return path;
}

enum class BandKind { river, short_river, slow, dry };

Band draw_band(Rng& rng, BandKind kind) {
  const double sign = hemisphere(rng, 0.5);
  const GeoPoint start{sign * drawn(rng, 17, 33), drawn(rng, 0, 360)};
  const double heading = drawn(rng, 20, 65), turn = drawn(rng, -9, 7),
               length =
                   kind == BandKind::short_river ? drawn(rng, 700, 1500) : drawn(rng, 2500, 6500);
  Band band{draw_path(rng, start, heading, turn, length),
            drawn(rng, 170, 280),
            drawn(rng, 17, 30),
            drawn(rng, 15, 27),
            drawn(rng, 1, 4),
            kind == BandKind::river};
  if (kind == BandKind::slow) band.wind = drawn(rng, -4, 4);
  if (kind == BandKind::dry) band.moisture = drawn(rng, -6, 0);
  return band;
}

}  // namespace

Weather draw_weather(Rng& rng) {
  Weather weather;
  weather.season = std::sin(drawn(rng, 0, 2 * std::numbers::pi));
  const auto times = [&](double mean, const auto& draw) {
    for (uint32_t n = rng.poisson(mean); n > 0; --n) draw();
  };
  times(2.2, [&] { weather.cyclones.push_back(draw_cyclone(rng, weather.season, false)); });
  times(1.5, [&] { weather.cyclones.push_back(draw_cyclone(rng, weather.season, true)); });
  for (const double sign : {1.0, -1.0})
    times(6, [&] { weather.lows.push_back(draw_low(rng, sign)); });
  times(4.5, [&] { weather.bands.push_back(draw_band(rng, BandKind::river)); });
  times(1.2, [&] { weather.bands.push_back(draw_band(rng, BandKind::short_river)); });
  times(1.5, [&] { weather.bands.push_back(draw_band(rng, BandKind::slow)); });
  times(1.5, [&] { weather.bands.push_back(draw_band(rng, BandKind::dry)); });
  times(7, [&] {
    weather.patches.push_back(
        {{drawn(rng, -45, 45), drawn(rng, 0, 360)}, drawn(rng, 150, 600), drawn(rng, 8, 22)});
  });
  return weather;
}

}  // namespace tutti::generate
