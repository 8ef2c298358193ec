#include "tutti/generate/cosmology/cosmology.h"

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/generate/cosmology/assignment.h"
#include "tutti/generate/cosmology/displacement.h"
#include "tutti/generate/cosmology/gaussian_field.h"
#include "tutti/generate/cosmology/power_spectrum.h"

namespace tutti::generate {
namespace {

constexpr double kCollapseRadius = 5;  // Mpc/h, as Kitaura & Hess

Cosmology draw_cosmology(double spread, Rng& rng) {
  const std::array<ParameterRange, 4> ranges = parameter_ranges(spread);
  std::array<double, 4> p;
  for (size_t i = 0; i < p.size(); ++i)
    p[i] = ranges[i].low + (ranges[i].high - ranges[i].low) * rng.uniform();
  return {p[0], p[1], p[2], p[3]};
}

}  // namespace

std::array<ParameterRange, 4> parameter_ranges(double spread) {
  if (!(spread > 0 && spread <= kGreatestSpread))
    throw ConfigError(
        fmt::format("parameters within {} of Planck's: above 0 and at most {}, where baryons are "
                    "nine tenths of the matter",
                    spread, kGreatestSpread));
  // Written as decimals, to match the bits of the published ranges.
  if (spread == kPublishedSpread)
    return {{{0.2205, 0.4095}, {0.5677, 1.0543}, {0.6755, 1.2545}, {0.4718, 0.8762}}};
  const Cosmology planck;
  const auto around = [&](double middle) {
    return ParameterRange{middle * (1 - spread), middle * (1 + spread)};
  };
  return {around(planck.omega_m), around(planck.sigma_8), around(planck.n_s), around(planck.h)};
}

Cosmology cosmology_of(const VolumeSpec& spec, int64_t index) {
  Rng rng(spec.seed, Purpose::generate, static_cast<uint64_t>(index));
  return draw_cosmology(spec.spread, rng);
}

std::array<float, 4> unit_parameters(const Cosmology& cosmology, double spread) {
  const std::array<ParameterRange, 4> ranges = parameter_ranges(spread);
  const std::array<double, 4> p = {cosmology.omega_m, cosmology.sigma_8, cosmology.n_s,
                                   cosmology.h};
  std::array<float, 4> unit;
  for (size_t i = 0; i < p.size(); ++i) {
    const auto [low, high] = ranges[i];
    unit[i] = static_cast<float>((2 * p[i] - low - high) / (high - low));
  }
  return unit;
}

void generate_volume(const VolumeSpec& spec, int64_t index, int16_t* counts) {
  generate_volume(spec, index, cosmology_of(spec, index), counts);
}

void generate_volume(const VolumeSpec& spec, int64_t index, const Cosmology& cosmology,
                     int16_t* counts) {
  CHECK(spec.cell > 0 && index >= 0, "cells of {} Mpc/h, volume {}", spec.cell, index);
  CHECK(spec.particles >= 1 && spec.particles <= kMostParticles, "{}^3 particles a cell",
        spec.particles);
  Rng rng(spec.seed, Purpose::generate, static_cast<uint64_t>(index));
  draw_cosmology(spec.spread, rng);  // so that the field uses other random numbers
  const FourierGrid grid(spec.side);
  Displacement displacement(grid, static_cast<float>(kCollapseRadius / spec.cell),
                            gaussian_field(grid, spec.cell, LinearPower(cosmology), rng));
  std::array<GridField, 3> psi = {GridField(spec.side), GridField(spec.side), GridField(spec.side)};
  for (size_t i = 0; i < kRedshifts.size(); ++i) {
    const double z = kRedshifts[i];
    displacement.at({static_cast<float>(linear_growth(cosmology.omega_m, z)),
                     static_cast<float>(second_order_growth(cosmology.omega_m, z))},
                    psi);
    count_displaced(grid, psi, spec.particles,
                    {counts, static_cast<int>(i), static_cast<int>(kRedshifts.size())});
  }
}

}  // namespace tutti::generate
