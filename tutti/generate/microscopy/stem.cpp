#include "tutti/generate/microscopy/stem.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::generate {
namespace {

constexpr double kColumnRadius = 0.55, kFaintest = 0.15;

double strength_of(int element) { return std::pow(element, 1.7); }

double drawn_between(Rng& rng, double low, double high) {
  return low + (high - low) * static_cast<double>(rng.uniform());
}

/// Adds defects to graphene: in half of the images silicon replaces a carbon atom, and in a third
/// one is missing.
void add_defects(Rng& rng, std::vector<PlacedAtom>& columns, double view) {
  std::vector<size_t> seen;
  for (size_t i = 0; i < columns.size(); ++i)
    if (std::max(std::abs(columns[i].x), std::abs(columns[i].y)) < view / 2) seen.push_back(i);
  const auto any = [&] { return seen[rng.below(static_cast<uint32_t>(seen.size()))]; };
  const bool doped = rng.uniform() < 0.5f, missing = rng.uniform() < 1.0f / 3;
  if (seen.empty()) return;
  if (doped) {
    PlacedAtom& atom = columns[any()];
    atom.element = 14;
    atom.strength = strength_of(14);
  }
  if (missing) columns.erase(columns.begin() + static_cast<ptrdiff_t>(any()));
}

/// Returns the middle of a field with its origin at index 0.
std::vector<float> middle_of(const std::vector<float>& field, int side, int view) {
  std::vector<float> out;
  for (int row = 0; row < view; ++row)
    for (int column = 0; column < view; ++column) {
      const int y = (row - view / 2 + side) % side, x = (column - view / 2 + side) % side;
      out.push_back(
          field[static_cast<size_t>(y) * static_cast<size_t>(side) + static_cast<size_t>(x)]);
    }
  return out;
}

std::vector<uint8_t> mask_of(const std::vector<PlacedAtom>& columns, int view, double pixel) {
  double strongest = 0;
  for (const PlacedAtom& column : columns) strongest = std::max(strongest, column.strength);
  std::vector<uint8_t> mask(static_cast<size_t>(view) * static_cast<size_t>(view));
  const double radius = kColumnRadius / pixel;
  for (const PlacedAtom& column : columns) {
    if (column.strength < kFaintest * strongest) continue;
    const double x = column.x / pixel + view / 2, y = column.y / pixel + view / 2;
    for (int row = std::max(0, static_cast<int>(y - radius));
         row < std::min<double>(view, y + radius + 1); ++row)
      for (int i = std::max(0, static_cast<int>(x - radius));
           i < std::min<double>(view, x + radius + 1); ++i)
        if (std::hypot(i - x, row - y) <= radius)
          mask[static_cast<size_t>(row) * static_cast<size_t>(view) + static_cast<size_t>(i)] = 1;
  }
  return mask;
}

}  // namespace

std::vector<PlacedAtom> columns_in_box(const Crystal& crystal, const CrystalPose& pose,
                                       double box) {
  Crystal columns = crystal;
  columns.atoms.clear();
  std::vector<double> strengths;
  for (const CellAtom& atom : crystal.atoms) {
    const auto above = std::ranges::find_if(columns.atoms, [&](const CellAtom& other) {
      return std::abs(other.x - atom.x) < 1e-6 && std::abs(other.y - atom.y) < 1e-6;
    });
    if (above != columns.atoms.end()) {
      strengths[static_cast<size_t>(above - columns.atoms.begin())] += strength_of(atom.element);
      continue;
    }
    columns.atoms.push_back({atom.element, atom.x, atom.y, 0});
    strengths.push_back(strength_of(atom.element));
  }
  std::vector<PlacedAtom> placed;
  for (size_t i = 0; i < strengths.size(); ++i) {
    Crystal one = columns;
    one.atoms = {columns.atoms[i]};
    for (PlacedAtom atom : atoms_in_box(one, -1, pose, box)) {
      atom.strength = strengths[i];
      placed.push_back(atom);
    }
  }
  return placed;
}

std::vector<float> incoherent_image(const WaveGrid& grid, std::span<const PlacedAtom> columns,
                                    double b_factor, const ProbeLens& lens) {
  WaveField probe = probe_modes(grid, lens);
  grid.to_values(probe);
  for (int64_t i = 0; i < probe.elements(); ++i) probe[i] = std::norm(probe[i]);
  grid.to_modes(probe);
  const float all = probe[0].real();
  std::vector<float> factor(static_cast<size_t>(grid.elements()));
  for (int row = 0, at = 0; row < grid.side(); ++row)
    for (int column = 0; column < grid.side(); ++column, ++at) {
      const double thermal = std::exp(-b_factor * grid.square_frequency(row, column) / 4);
      factor[static_cast<size_t>(at)] = static_cast<float>(thermal) * probe[at].real() / all;
    }
  WaveField object(grid.elements());
  add_structure(grid, columns, factor, object);
  grid.to_values(object);
  std::vector<float> image;
  const auto positions = static_cast<float>(grid.elements());
  for (int64_t i = 0; i < object.elements(); ++i) image.push_back(object[i].real() / positions);
  return image;
}

StemGenerator::StemGenerator(const StemSpec& spec) : spec_(spec), classes_(kCrystalClasses) {
  if (spec.side < 8 || spec.side % 2 != 0)
    throw ConfigError(
        fmt::format("images of {0} x {0}: give an even side of 8 or more", spec.side));
  for (const Crystal* crystal : crystals_named(spec.crystal))
    classes_[static_cast<size_t>(crystal->kind)].push_back(crystal);
  std::erase_if(classes_, [](const auto& substances) { return substances.empty(); });
  const int side = spec.side / 2 * 3;  // probe_modes refuses a lens that does not fit
  (void)probe_modes(WaveGrid(side, side * spec.pixel * 1.1),
                    {.kilovolts = spec.kilovolts, .convergence = 1e-3 * spec.convergence});
}

StemSample StemGenerator::sample(int64_t index) const {
  Rng rng(spec_.seed, Purpose::generate, static_cast<uint64_t>(index));
  const auto& substances = classes_[rng.below(static_cast<uint32_t>(classes_.size()))];
  const Crystal& crystal = *substances[rng.below(static_cast<uint32_t>(substances.size()))];
  const double pixel = spec_.pixel * drawn_between(rng, 0.9, 1.1);
  const CrystalPose pose{.x = drawn_between(rng, -crystal.a / 2, crystal.a / 2),
                         .y = drawn_between(rng, -crystal.b / 2, crystal.b / 2),
                         .azimuth = drawn_between(rng, -std::numbers::pi, std::numbers::pi),
                         .strain = drawn_between(rng, -0.02, 0.02)};
  const int side = spec_.side / 2 * 3;  // the seam of the box is out of view
  const WaveGrid grid(side, side * pixel);
  std::vector<PlacedAtom> columns = columns_in_box(crystal, pose, grid.box());
  if (crystal.kind == CrystalClass::graphene) add_defects(rng, columns, spec_.side * pixel);
  ProbeLens lens{.kilovolts = spec_.kilovolts, .convergence = 1e-3 * spec_.convergence};
  const auto seen = [&] {
    return middle_of(incoherent_image(grid, columns, crystal.b_factor, lens), side, spec_.side);
  };

  StemSample made{.kind = crystal.kind};
  made.clean = seen();
  lens.defocus = 25 * static_cast<double>(rng.normal());
  made.image = seen();
  made.columns = mask_of(columns, spec_.side, pixel);
  const auto scaled = [](std::vector<float>& field) {
    const float most = std::max(*std::ranges::max_element(field), 1e-20f);
    for (float& x : field) x /= most;
  };
  scaled(made.clean);
  scaled(made.image);
  const double dose = spec_.dose * std::pow(5, -static_cast<double>(rng.uniform()));
  const double level = drawn_between(rng, 0, 0.3), slope_x = drawn_between(rng, -0.1, 0.1),
               slope_y = drawn_between(rng, -0.1, 0.1);
  for (int row = 0; row < spec_.side; ++row)
    for (int column = 0; column < spec_.side; ++column) {
      float& x = made.image[static_cast<size_t>(row) * static_cast<size_t>(spec_.side) +
                            static_cast<size_t>(column)];
      const double background = level + slope_x * column / spec_.side + slope_y * row / spec_.side;
      const double mean = std::max(0.0, static_cast<double>(x) + std::max(0.0, background));
      x = static_cast<float>(spec_.dose > 0 ? rng.poisson(mean * dose) / dose : mean);
    }
  return made;
}

}  // namespace tutti::generate
