#include "tutti/generate/climate/smooth_noise.h"

#include <algorithm>
#include <cmath>

namespace tutti::generate {
namespace {

constexpr int kCoarseRows = 12;  // intervals from pole to pole; twice as many around

int lattice_rows(int octave) { return (kCoarseRows << octave) + 3; }  // a spline's value needs four
int lattice_columns(int octave) { return 2 * kCoarseRows << octave; }
double lattice_spacing(int octave) { return 180.0 / (kCoarseRows << octave); }

// Returns the four weights of a uniform cubic B-spline at t in [0, 1), and their derivatives by t.
std::array<double, 4> spline(double t) {
  const double s = 1 - t;
  return {s * s * s / 6, (3 * t * t * t - 6 * t * t + 4) / 6, (3 * s * s * s - 6 * s * s + 4) / 6,
          t * t * t / 6};
}
std::array<double, 4> spline_slope(double t) {
  const double s = 1 - t;
  return {-s * s / 2, (3 * t * t - 4 * t) / 2, (4 * s - 3 * s * s) / 2, t * t / 2};
}

// The place of a coordinate, in degrees from the first lattice point: four points from `first` on.
struct SplinePlace {
  int first;
  std::array<double, 4> weight, slope;  // slope: per degree
};
SplinePlace spline_place(double degrees, int octave) {
  const double u = degrees / lattice_spacing(octave), whole = std::floor(u);
  SplinePlace place{static_cast<int>(whole), spline(u - whole), spline_slope(u - whole)};
  for (double& slope : place.slope) slope /= lattice_spacing(octave);
  return place;
}

}  // namespace

NoiseColumns::NoiseColumns(std::vector<double> longitudes)
    : columns_(static_cast<int>(longitudes.size())) {
  for (int octave = 0; octave < kNoiseOctaves; ++octave)
    for (const double longitude : longitudes) {
      const SplinePlace place = spline_place(longitude, octave);
      Place to{place.first, {}, {}};
      std::ranges::copy(place.weight, to.weight.begin());
      std::ranges::copy(place.slope, to.slope.begin());
      places_[static_cast<size_t>(octave)].push_back(to);
    }
}

SmoothNoise::SmoothNoise(Rng& rng, double persistence) {
  // Interpolating standard normals by a spline scales the variance by 151/315 along each axis.
  const double spline_variance = std::pow(151.0 / 315, 2);
  double variance = 0;
  for (int octave = 0; octave < kNoiseOctaves; ++octave)
    variance += std::pow(persistence, 2 * octave) * spline_variance;
  for (int octave = 0; octave < kNoiseOctaves; ++octave) {
    const auto o = static_cast<size_t>(octave);
    amplitude_[o] = std::pow(persistence, octave) / std::sqrt(variance);
    lattice_[o].resize(static_cast<size_t>(lattice_rows(octave) * lattice_columns(octave)));
    for (float& value : lattice_[o]) value = rng.normal();
  }
}

void SmoothNoise::values(double latitude, const NoiseColumns& columns, Row& row) const {
  row.value.assign(static_cast<size_t>(columns.columns()), 0.0f);
  std::vector<float> along;
  for (int octave = 0; octave < kNoiseOctaves; ++octave) {
    const auto o = static_cast<size_t>(octave);
    const auto width = static_cast<size_t>(lattice_columns(octave));
    const SplinePlace place = spline_place(latitude + 90, octave);
    along.assign(width + 3, 0.0f);
    for (size_t a = 0; a < 4; ++a) {
      const float* from = lattice_[o].data() + (static_cast<size_t>(place.first) + a) * width;
      const auto weight = static_cast<float>(amplitude_[o] * place.weight[a]);
      for (size_t k = 0; k < width; ++k) along[k] += weight * from[k];
    }
    std::copy_n(along.begin(), 3, along.begin() + static_cast<std::ptrdiff_t>(width));
    const auto& places = columns.places_[o];
    for (size_t j = 0; j < places.size(); ++j) {
      const float* c = along.data() + places[j].first;
      const auto& w = places[j].weight;
      row.value[j] += w[0] * c[0] + w[1] * c[1] + w[2] * c[2] + w[3] * c[3];
    }
  }
}

void SmoothNoise::gradients(double latitude, const NoiseColumns& columns, Row& row) const {
  values(latitude, columns, row);
  row.by_latitude.assign(row.value.size(), 0.0f);
  row.by_longitude.assign(row.value.size(), 0.0f);
  std::vector<float> along, slope;
  for (int octave = 0; octave < kNoiseOctaves; ++octave) {
    const auto o = static_cast<size_t>(octave);
    const auto width = static_cast<size_t>(lattice_columns(octave));
    const SplinePlace place = spline_place(latitude + 90, octave);
    along.assign(width + 3, 0.0f);
    slope.assign(width + 3, 0.0f);
    for (size_t a = 0; a < 4; ++a) {
      const float* from = lattice_[o].data() + (static_cast<size_t>(place.first) + a) * width;
      const auto weight = static_cast<float>(amplitude_[o] * place.weight[a]),
                 change = static_cast<float>(amplitude_[o] * place.slope[a]);
      for (size_t k = 0; k < width; ++k) {
        along[k] += weight * from[k];
        slope[k] += change * from[k];
      }
    }
    for (size_t k = 0; k < 3; ++k) {
      along[width + k] = along[k];
      slope[width + k] = slope[k];
    }
    const auto& places = columns.places_[o];
    for (size_t j = 0; j < places.size(); ++j) {
      const float *c = along.data() + places[j].first, *d = slope.data() + places[j].first;
      const auto &w = places[j].weight, &s = places[j].slope;
      row.by_latitude[j] += w[0] * d[0] + w[1] * d[1] + w[2] * d[2] + w[3] * d[3];
      row.by_longitude[j] += s[0] * c[0] + s[1] * c[1] + s[2] * c[2] + s[3] * c[3];
    }
  }
}

double SmoothNoise::at(double latitude, double longitude) const {
  double value = 0;
  for (int octave = 0; octave < kNoiseOctaves; ++octave) {
    const auto o = static_cast<size_t>(octave);
    const auto width = lattice_columns(octave);
    const SplinePlace down = spline_place(latitude + 90, octave),
                      across = spline_place(longitude - 360 * std::floor(longitude / 360), octave);
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b < 4; ++b)
        value +=
            amplitude_[o] * down.weight[static_cast<size_t>(a)] *
            across.weight[static_cast<size_t>(b)] *
            lattice_[o][static_cast<size_t>((down.first + a) * width + (across.first + b) % width)];
  }
  return value;
}

}  // namespace tutti::generate
