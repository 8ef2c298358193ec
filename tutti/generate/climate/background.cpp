#include "tutti/generate/climate/background.h"

#include <algorithm>

#include "tutti/generate/climate/planet.h"

namespace tutti::generate {
namespace {

// Returns the strength of the weather's stream function at a latitude: greatest in the
// mid-latitudes, 0 with slope 0 at the poles, where a grid's columns meet.
double stream_strength(double latitude) {
  const double c = cosine_of_latitude(latitude),
               s = std::sin(2 * latitude * std::numbers::pi / 180);
  return c * c * (0.5 + 0.9 * s * s);
}

struct Noises {
  // Drawn in this order. Smaller numbers are smoother: wind is the stream's derivative.
  explicit Noises(Rng& rng)
      : stream(rng, 0.27), temperature(rng, 0.45), upper(rng, 0.4), moisture(rng, 0.6),
        rain(rng, 0.85), ground(rng, 0.7) {}
  SmoothNoise stream, temperature, upper, moisture, rain, ground;
};

struct NoiseRows {
  SmoothNoise::Row stream, temperature, upper, moisture, rain, ground, relief;
};

// Fills one row of the fields.
class BackgroundRow {
 public:
  BackgroundRow(double latitude, double season)
      : latitude_(latitude), zonal_(zonal_climate(latitude, season)) {
    constexpr double kStep = 0.01, kMetres = 1000 * kKilometresPerDegree;
    constexpr double kStream = 9.5e6;  // m^2/s, rms where the strength is 1
    const double strength = stream_strength(latitude),
                 slope = (stream_strength(latitude + kStep) - stream_strength(latitude - kStep)) /
                         (2 * kStep);
    east_by_value_ = static_cast<float>(-kStream * slope / kMetres);
    east_by_slope_ = static_cast<float>(-kStream * strength / kMetres);
    north_by_slope_ =
        static_cast<float>(kStream * strength / (kMetres * cosine_of_latitude(latitude)));
    const double coriolis = 1.4584e-4 * std::sin(latitude * std::numbers::pi / 180);
    pressure_ = static_cast<float>(1.1 * coriolis * kStream * strength);
    pole_ = static_cast<float>(std::tanh(latitude / 10));
    const double angle = 20 * std::tanh(latitude / 10) * std::numbers::pi / 180;
    turn_cosine_ = static_cast<float>(0.85 * std::cos(angle));
    turn_sine_ = static_cast<float>(0.85 * std::sin(angle));
    const double sine = std::sin(latitude * std::numbers::pi / 180);
    swing_ = static_cast<float>((1.5 + 6 * sine * sine) * (1 - std::pow(sine, 8)));
  }

  void fill(const NoiseRows& noise, size_t j, float* p) const {
    const float stream = noise.stream.value[j], warm = noise.temperature.value[j],
                upper = noise.upper.value[j];
    const float u = static_cast<float>(zonal_.u850) + east_by_value_ * stream +
                    east_by_slope_ * noise.stream.by_latitude[j],
                v = north_by_slope_ * noise.stream.by_longitude[j];
    p[kU850] = u;
    p[kV850] = v;
    p[kUbot] = turn_cosine_ * u - turn_sine_ * v;
    p[kVbot] = turn_cosine_ * v + turn_sine_ * u;
    p[kPsl] = static_cast<float>(zonal_.psl) + pressure_ * stream;
    p[kTrefht] = static_cast<float>(zonal_.t2m) + swing_ * warm;
    p[kT500] = static_cast<float>(zonal_.t500) + swing_ * (0.6f * warm + 0.3f * upper);
    p[kT200] = static_cast<float>(zonal_.t200) + swing_ * (0.5f * upper - 0.4f * warm);
    p[kZ200] = static_cast<float>(zonal_.z200) + swing_ * (18 * warm + 12 * upper) +
               12e-2f * pressure_ * stream;
    const float poleward = pole_ * v;
    p[kTmq] = static_cast<float>(zonal_.tmq) *
              std::exp(0.3f * noise.moisture.value[j] + 0.012f * poleward - 0.04f);
    const float shower = noise.rain.value[j] + 0.02f * p[kTmq] - 1.3f;
    p[kPrect] = shower > 0 ? 1.3e-7f * shower * shower : 0.0f;
    p[kQrefht] = 0.8f + 0.08f * noise.moisture.value[j];
    const float height = Planet::height(latitude_, noise.relief.value[j]);
    p[kTs] = height > 0 ? 1 + 3 * noise.ground.value[j] : 0.8f;
    p[kPs] = p[kZ1000] = height;
    p[kZbot] = 0;
  }

 private:
  double latitude_;
  ZonalClimate zonal_;
  float east_by_value_, east_by_slope_, north_by_slope_, pressure_, turn_cosine_, turn_sine_;
  float swing_;  // K, amplitude of the temperature's noise
  float pole_;   // -1 in the south, 1 in the north
};

// Returns the specific humidity of saturated air (Bolton 1980, MWR 108, 1046), kg/kg.
float saturation(float kelvin, float pascal) {
  const float celsius = kelvin - 273.15f;
  return 0.622f * 611.2f * std::exp(17.67f * celsius / (celsius + 243.5f)) / pascal;
}

void finish_pixel(float* p) {
  const float height = p[kZ1000], sea_level = p[kTrefht];
  const float air = sea_level - 0.006f * height;
  const float ground = p[kTs], humidity = std::clamp(p[kQrefht], 0.15f, 1.0f);
  p[kTrefht] = air;
  p[kTs] = air + ground;
  p[kPs] = p[kPsl] * std::exp(-height / (29.27f * (sea_level + air) / 2));
  p[kQrefht] = humidity * saturation(air, p[kPs]);
  p[kTmq] = std::clamp(p[kTmq] * std::exp(-height / 2200), 0.05f, 105.0f);
  p[kPrect] = std::clamp(p[kPrect] * std::min(1.0f, p[kTmq] / 20), 0.0f, 3.5e-5f);
  p[kZ1000] = std::max(height, (p[kPsl] - 100000) / 11.8f);
  p[kZbot] = 0.2195f * air;
  if (height > 0) {  // the ground slows the wind
    p[kUbot] *= 0.7f;
    p[kVbot] *= 0.7f;
  }
}

}  // namespace

void fill_background(const ClimateFields& fields, double season, Rng& rng) {
  const ClimateGrid& grid = fields.grid;
  const Noises noises(rng);
  std::vector<double> longitudes;
  for (int j = 0; j < grid.columns; ++j) longitudes.push_back(longitude_of(grid, j));
  const NoiseColumns columns(longitudes);
  NoiseRows rows;
  for (int i = 0; i < grid.rows; ++i) {
    const double latitude = latitude_of(grid, i);
    noises.stream.gradients(latitude, columns, rows.stream);
    noises.temperature.values(latitude, columns, rows.temperature);
    noises.upper.values(latitude, columns, rows.upper);
    noises.moisture.values(latitude, columns, rows.moisture);
    noises.rain.values(latitude, columns, rows.rain);
    noises.ground.values(latitude, columns, rows.ground);
    planet().relief().values(latitude, columns, rows.relief);
    const BackgroundRow row(latitude, season);
    for (int j = 0; j < grid.columns; ++j)
      row.fill(rows, static_cast<size_t>(j), fields.at(int64_t{i} * grid.columns + j));
  }
}

void finish_climate(const ClimateFields& fields) {
  for (int64_t i = 0; i < fields.grid.pixels(); ++i) finish_pixel(fields.at(i));
}

}  // namespace tutti::generate
