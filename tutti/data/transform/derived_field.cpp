#include "tutti/data/transform/derived_field.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/format/array/frames.h"
#include "tutti/data/format/molecules/selection.h"
#include "tutti/data/transform/image_field.h"

namespace tutti::data {
namespace {

/// Number of points that are the unit cell, in a field with the step `periodic`.
constexpr int64_t kCellPoints = 3;

/// Returns the indices of the selected atoms in `stored`, which has `atoms` of them.
std::vector<int64_t> chosen_atoms(const Field& stored, int64_t atoms,
                                  const Derivation& derivation) {
  if (!is_there(derivation.topology))
    throw ConfigError(fmt::format(
        "data.transforms: the topology of the field '{}' is not there: {}; in a configuration file "
        "a relative path starts at the folder of that file",
        stored.name, derivation.topology));
  const Topology topology = read_topology(derivation.topology);
  if (std::ssize(topology.atoms) != atoms)
    throw ConfigError(fmt::format(
        "data.transforms: the field '{}' has {} atoms, and {} has {}: give the topology of the "
        "trajectory, with all of its atoms (water, too) and no others{}",
        stored.name, atoms, topology.file, topology.atoms.size(),
        std::ssize(topology.atoms) + kCellPoints == atoms
            ? fmt::format("; if the field is from {}, its first step is 'periodic'", kPeriodicArray)
            : ""));
  return selected_atoms(topology, parse_selection(derivation.selection));
}

UnitCell cell_for(const Field& stored, const float* points, float radius) {
  UnitCell cell{};
  std::copy_n(points, cell.size(), cell.begin());
  if (!is_sound_cell(cell))
    throw BadFile(
        "data.transforms: 'periodic' takes the last three points of '{}' for the vectors of a unit "
        "cell, and a sample has [{}] there: read the field 'from {}', or leave 'periodic' out "
        "where a trajectory has no cell",
        stored.name, fmt::join(cell, " "), kPeriodicArray);
  if (radius > greatest_reach(cell))
    throw BadFile(
        "data.transforms: 'contacts {}' of '{}' is more than half of a unit cell whose sides along "
        "x, y and z are {} {} {}: a point would have several nearest images; take a smaller "
        "distance, or leave 'periodic' out",
        radius, stored.name, cell[0], cell[4], cell[8]);
  return cell;
}

/// Sets the map to 1 where points i and j are at most `radius` apart, else 0. x: [n, 3], map: [n,
/// n]. `nearest` replaces a vector between two points by its nearest image.
template <class Nearest>
void contact_map(const float* x, size_t n, float radius, float* map, Nearest nearest) {
  const float most = radius * radius;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      float d[3] = {x[3 * i] - x[3 * j], x[3 * i + 1] - x[3 * j + 1], x[3 * i + 2] - x[3 * j + 2]};
      nearest(d);
      map[i * n + j] = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] <= most ? 1.0f : 0.0f;
    }
}

}  // namespace

DerivedField::DerivedField(const Field& stored, const Derivation& derivation)
    : stored_(stored), made_(stored), radius_(derivation.radius), periodic_(derivation.periodic) {
  if (derivation.is_identity()) return;
  if (stored.shape.rank() != 2 || stored.shape[1] != 3)
    throw ConfigError(fmt::format(
        "data.transforms: the field '{}' ({}) has steps that take coordinates, {}: they want "
        "samples of [atoms, 3], as 'from coordinates' of a trajectory gives",
        stored.name, stored.to_string(),
        radius_     ? "contacts"
        : periodic_ ? "periodic"
                    : "select"));
  if (periodic_ && !radius_)
    throw ConfigError(fmt::format(
        "data.transforms: 'periodic' of the field '{}' says which images 'contacts' takes, and "
        "there is no such step: leave it out, and read the field 'from coordinates'",
        stored.name));
  const int64_t atoms = stored.shape[0] - (periodic_ ? kCellPoints : 0);
  if (atoms < 1)
    throw ConfigError(
        fmt::format("data.transforms: the field '{}' ({}) has no points besides a unit cell",
                    stored.name, stored.to_string()));
  if (!derivation.selection.empty()) selected_ = chosen_atoms(stored, atoms, derivation);
  const int64_t points = selected_.empty() ? atoms : std::ssize(selected_);
  made_ = {.name = stored.name,
           .element = ElementType::f32,
           .shape = {points, 3},
           .unit = radius_ ? "" : stored.unit};
  if (radius_) made_.shape = {1, points, points};
}

const float* DerivedField::make(const void* stored, std::vector<float>& memory) const {
  const auto values = static_cast<size_t>(stored_.elements());
  const size_t atoms = values / 3 - (periodic_ ? kCellPoints : 0);
  const size_t points = selected_.empty() ? atoms : selected_.size();
  const size_t in_map = radius_ ? points * points : 0;
  memory.resize(in_map + 3 * points + values);  // the map, the chosen points, all points
  float *chosen = memory.data() + in_map, *all = chosen + 3 * points;
  to_f32(stored_.element, stored, stored_.elements(), all);
  if (selected_.empty()) {
    chosen = all;
  } else {
    for (size_t i = 0; i < points; ++i) std::copy_n(all + 3 * selected_[i], 3, chosen + 3 * i);
  }
  if (!radius_) return chosen;
  if (periodic_) {
    const UnitCell cell = cell_for(stored_, all + 3 * atoms, *radius_);
    contact_map(chosen, points, *radius_, memory.data(), [&](float* d) { nearest_image(cell, d); });
  } else {
    contact_map(chosen, points, *radius_, memory.data(), [](float*) {});
  }
  return memory.data();
}

Field derived_field(const Field& stored, const Derivation& derivation) {
  if (stored.coded || derivation.resized) return ImageField(stored, derivation).field();
  return DerivedField(stored, derivation).field();
}

Shape shape_after(const Field& stored, const FieldSteps& steps) {
  return placed_shape(derived_field(stored, steps.derivation), steps.placement);
}

ValueFunction value_function(const Field& stored, const FieldSteps& steps) {
  const Field taken = derived_field(stored, steps.derivation);
  const Shape placed = placed_shape(taken, steps.placement);
  return {taken, placed.rank() > 0 ? placed[0] : 1, steps.values};
}

}  // namespace tutti::data
