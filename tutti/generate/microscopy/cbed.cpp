#include "tutti/generate/microscopy/cbed.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/generate/microscopy/scattering.h"

namespace tutti::generate {
namespace {

constexpr double kMilli = 1e-3, kAngstromsOfNm = 10;

/// The grid has half as many modes again as the pattern has pixels: the outer ones stay free of
/// waves.
int grid_side(const CbedSpec& spec) {
  if (spec.side < 8 || spec.side % 2 != 0)
    throw ConfigError(
        fmt::format("patterns of {0} x {0}: give an even side of 8 or more", spec.side));
  return spec.side / 2 * 3;
}

/// The pattern's pixels are the grid's modes, 1 / box apart.
double box_of(const CbedSpec& spec) {
  return spec.side * electron_wavelength(spec.kilovolts) / (2 * kMilli * spec.angle);
}

std::vector<std::vector<const Crystal*>> by_class(const std::string& name) {
  std::vector<std::vector<const Crystal*>> classes(kCrystalClasses);
  for (const Crystal* crystal : crystals_named(name))
    if (crystal->kind != CrystalClass::graphene)
      classes[static_cast<size_t>(crystal->kind)].push_back(crystal);
  std::erase_if(classes, [](const auto& substances) { return substances.empty(); });
  if (classes.empty())
    throw ConfigError(
        fmt::format("of {} there are no diffraction patterns: it is one sheet", name));
  return classes;
}

double within(Rng& rng, double low, double high) {
  return low + (high - low) * static_cast<double>(rng.uniform());
}

/// Maps x from [low, high] to [-1, 1]; 0 if both are equal.
float place_between(double x, double low, double high) {
  return high > low ? static_cast<float>((2 * x - low - high) / (high - low)) : 0.0f;
}

/// Returns the middle [side][side] of a field with its origin at index 0.
template <class Value>
std::vector<float> middle(const WaveGrid& grid, int side, Value value) {
  std::vector<float> out;
  out.reserve(static_cast<size_t>(side) * static_cast<size_t>(side));
  const auto wrapped = [&](int i) { return (i - side / 2 + grid.side()) % grid.side(); };
  for (int row = 0; row < side; ++row)
    for (int column = 0; column < side; ++column)
      out.push_back(value(int64_t{wrapped(row)} * grid.side() + wrapped(column)));
  return out;
}

}  // namespace

CbedGenerator::CbedGenerator(const CbedSpec& spec)
    : spec_(spec), classes_(by_class(spec.crystal)), grid_(grid_side(spec), box_of(spec)),
      probe_(probe_modes(grid_,
                         {.kilovolts = spec.kilovolts, .convergence = kMilli * spec.convergence})) {
  if (spec.thickest < spec.thinnest)
    throw ConfigError(fmt::format("the thickest crystal, {} nm, is thinner than the thinnest, {}",
                                  spec.thickest, spec.thinnest));
}

CbedSample CbedGenerator::sample(int64_t index) const {
  Rng rng(spec_.seed, Purpose::generate, static_cast<uint64_t>(index));
  const auto& substances = classes_[rng.below(static_cast<uint32_t>(classes_.size()))];
  const Crystal& crystal = *substances[rng.below(static_cast<uint32_t>(substances.size()))];
  const double tilt_x = within(rng, -spec_.tilt, spec_.tilt);
  const double tilt_y = within(rng, -spec_.tilt, spec_.tilt);
  const double thickness = within(rng, spec_.thinnest, spec_.thickest);
  const double strain = within(rng, -spec_.strain, spec_.strain);
  const double azimuth = within(rng, -spec_.azimuth, spec_.azimuth);

  const Multislice crystal_slices(grid_, crystal,
                                  {.azimuth = azimuth * std::numbers::pi / 180, .strain = strain},
                                  spec_.kilovolts, {.x = kMilli * tilt_x, .y = kMilli * tilt_y});
  const int64_t slices = std::max<int64_t>(
      1, std::llround(kAngstromsOfNm * thickness / crystal_slices.slice_thickness()));
  const double found = static_cast<double>(slices) * crystal_slices.slice_thickness();
  WaveField wave(grid_.elements());
  std::copy_n(probe_.data(), probe_.elements(), wave.data());
  crystal_slices.propagate(wave, slices);

  CbedSample made{.kind = crystal.kind};
  const double pixels = static_cast<double>(spec_.side) * spec_.side;
  made.pattern = middle(grid_, spec_.side, [&](int64_t at) {
    const double share = static_cast<double>(std::norm(wave[at]));
    return static_cast<float>(
        pixels * (spec_.dose > 0 ? rng.poisson(share * spec_.dose) / spec_.dose : share));
  });
  const std::vector<float> potential = crystal_slices.mean_potential();
  made.potential =
      middle(grid_, spec_.side, [&](int64_t at) { return potential[static_cast<size_t>(at)]; });
  made.parameters = {place_between(tilt_x, -spec_.tilt, spec_.tilt),
                     place_between(tilt_y, -spec_.tilt, spec_.tilt),
                     place_between(found / kAngstromsOfNm, spec_.thinnest, spec_.thickest),
                     place_between(strain, -spec_.strain, spec_.strain)};
  return made;
}

}  // namespace tutti::generate
