#include "tutti/generate/microscopy/multislice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "tutti/base/error.h"
#include "tutti/generate/microscopy/scattering.h"

namespace tutti::generate {
namespace {

constexpr double kPi = std::numbers::pi;

std::complex<float> unit(double angle) {
  return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
}

/// Calls body(row, column, index) for each mode in the band.
template <class Body>
void for_each_mode(const WaveGrid& grid, Body body) {
  for (int row = 0, at = 0; row < grid.side(); ++row)
    for (int column = 0; column < grid.side(); ++column, ++at)
      if (grid.in_band(row, column)) body(row, column, at);
}

/// Returns the factor by which structure_modes multiplies an atom of the element, for a slice's
/// potential in V Angstrom, including thermal motion.
std::vector<float> potential_factor(const WaveGrid& grid, int element, double b_factor) {
  std::vector<float> factor(static_cast<size_t>(grid.elements()));
  const double scale = kVoltsOfFactor / (grid.box() * grid.box());
  for_each_mode(grid, [&](int row, int column, int at) {
    const double q_squared = grid.square_frequency(row, column);
    factor[static_cast<size_t>(at)] = static_cast<float>(
        scale * scattering_factor(element, q_squared) * std::exp(-b_factor * q_squared / 4));
  });
  return factor;
}

}  // namespace

WaveField probe_modes(const WaveGrid& grid, const ProbeLens& lens) {
  const double wavelength = electron_wavelength(lens.kilovolts);
  const double radius = lens.convergence / wavelength;  // aperture's radius in 1 / Angstrom
  if (radius * grid.box() > grid.side() * WaveGrid::kBand / 2)
    throw ConfigError(
        fmt::format("a cone of {:.3g} mrad does not fit into a pattern that ends at "
                    "{:.3g} mrad: give a smaller cone or a larger angle",
                    1e3 * lens.convergence,
                    1e3 * wavelength * grid.side() * WaveGrid::kBand / (2 * grid.box())));
  WaveField modes(grid.elements());
  double intensity = 0;
  for_each_mode(grid, [&](int row, int column, int at) {
    const double k = std::sqrt(grid.square_frequency(row, column));
    const double open = std::clamp((radius - k) * grid.box() + 0.5, 0.0, 1.0);
    const double a = wavelength * k * k;
    const double phase = -kPi * a * lens.defocus + kPi / 2 * lens.spherical * wavelength * a * a;
    modes[at] = static_cast<float>(std::sqrt(open)) * unit(-phase);
    intensity += open;
  });
  const auto scale = static_cast<float>(1 / std::sqrt(intensity));
  for (int64_t i = 0; i < modes.elements(); ++i) modes[i] *= scale;
  return modes;
}

Multislice::Multislice(const WaveGrid& grid, const Crystal& crystal, const CrystalPose& pose,
                       double kilovolts, const Tilt& tilt)
    : grid_(grid), thickness_(crystal.c / crystal.layers), propagator_(grid.elements()),
      potential_(grid.elements()) {
  make_transmissions(crystal, pose, kilovolts);
  make_propagator(kilovolts, tilt);
}

void Multislice::make_transmissions(const Crystal& crystal, const CrystalPose& pose,
                                    double kilovolts) {
  const double sigma = interaction_constant(kilovolts);
  const auto positions = static_cast<float>(grid_.elements());
  std::map<int, std::vector<float>> factors;
  for (const CellAtom& atom : crystal.atoms)
    if (!factors.contains(atom.element))
      factors[atom.element] = potential_factor(grid_, atom.element, crystal.b_factor);
  for (int layer = 0; layer < crystal.layers; ++layer) {
    std::map<int, std::vector<PlacedAtom>> atoms;
    for (const PlacedAtom& atom : atoms_in_box(crystal, layer, pose, grid_.box()))
      atoms[atom.element].push_back(atom);
    WaveField slice(grid_.elements());
    for (const auto& [element, placed] : atoms)
      add_structure(grid_, placed, factors.at(element), slice);
    for (int64_t i = 0; i < slice.elements(); ++i)
      potential_[i] += static_cast<float>(1 / crystal.c) * slice[i];
    grid_.to_values(slice);
    for (int64_t i = 0; i < slice.elements(); ++i)
      slice[i] = unit(sigma * static_cast<double>(slice[i].real()));
    grid_.to_modes(slice);
    WaveField limited(grid_.elements());
    for_each_mode(grid_, [&](int, int, int at) { limited[at] = slice[at] / positions; });
    grid_.to_values(limited);
    transmissions_.push_back(std::move(limited));
  }
}

void Multislice::make_propagator(double kilovolts, const Tilt& tilt) {
  const double wavelength = electron_wavelength(kilovolts);
  const auto scale = static_cast<float>(1 / static_cast<double>(grid_.elements()));
  for_each_mode(grid_, [&](int row, int column, int at) {
    const double shift =
        grid_.frequency(column) * std::tan(tilt.x) + grid_.frequency(row) * std::tan(tilt.y);
    propagator_[at] =
        scale * unit(thickness_ *
                     (2 * kPi * shift - kPi * wavelength * grid_.square_frequency(row, column)));
  });
}

void Multislice::propagate(WaveField& modes, int64_t slices) const {
  for (int64_t slice = 0; slice < slices; ++slice) {
    const WaveField& transmission =
        transmissions_[static_cast<size_t>(slice) % transmissions_.size()];
    grid_.to_values(modes);
    for (int64_t i = 0; i < modes.elements(); ++i) modes[i] = product(modes[i], transmission[i]);
    grid_.to_modes(modes);
    for (int64_t i = 0; i < modes.elements(); ++i) modes[i] = product(modes[i], propagator_[i]);
  }
}

std::vector<float> Multislice::mean_potential() const {
  WaveField values(grid_.elements());
  std::copy_n(potential_.data(), potential_.elements(), values.data());
  grid_.to_values(values);
  std::vector<float> potential(static_cast<size_t>(values.elements()));
  for (int64_t i = 0; i < values.elements(); ++i)
    potential[static_cast<size_t>(i)] = values[i].real();
  return potential;
}

}  // namespace tutti::generate
