#include "tutti/data/transform/derived_field.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/data/format/molecules/selection.h"
#include "tutti/data/transform/image_field.h"

namespace tutti::data {
namespace {

/// The places of the atoms in coordinates of `stored`.
std::vector<int64_t> chosen_atoms(const Field& stored, const Derivation& derivation) {
  const Topology topology = read_topology(derivation.topology);
  if (std::ssize(topology.atoms) != stored.shape[0])
    throw ConfigError(fmt::format(
        "data.transforms: the field '{}' has {} atoms, and {} has {}: give the topology of the "
        "trajectory, with all of its atoms (water, too) and no others",
        stored.name, stored.shape[0], topology.file, topology.atoms.size()));
  return selected_atoms(topology, parse_selection(derivation.selection));
}

/// 1 where points i and j are at most `radius` apart, else 0. x: [n, 3], map: [n, n].
void contact_map(const float* x, size_t n, float radius, float* map) {
  const float most = radius * radius;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      const float dx = x[3 * i] - x[3 * j], dy = x[3 * i + 1] - x[3 * j + 1],
                  dz = x[3 * i + 2] - x[3 * j + 2];
      map[i * n + j] = dx * dx + dy * dy + dz * dz <= most ? 1.0f : 0.0f;
    }
}

}  // namespace

DerivedField::DerivedField(const Field& stored, const Derivation& derivation)
    : stored_(stored), made_(stored), radius_(derivation.radius) {
  if (derivation.is_identity()) return;
  if (stored.shape.rank() != 2 || stored.shape[1] != 3)
    throw ConfigError(fmt::format(
        "data.transforms: the field '{}' ({}) has steps that take coordinates, {}: they want "
        "samples of [atoms, 3], as 'from coordinates' of a trajectory gives",
        stored.name, stored.to_string(), radius_ ? "contacts" : "select"));
  if (!derivation.selection.empty()) selected_ = chosen_atoms(stored, derivation);
  const int64_t points = selected_.empty() ? stored.shape[0] : std::ssize(selected_);
  made_ = {.name = stored.name, .element = ElementType::f32, .shape = {points, 3}};
  if (radius_) made_.shape = {1, points, points};
}

const float* DerivedField::make(const void* stored, std::vector<float>& memory) const {
  const auto values = static_cast<size_t>(stored_.elements());
  const size_t points = selected_.empty() ? values / 3 : selected_.size();
  const size_t in_map = radius_ ? points * points : 0;
  memory.resize(in_map + 3 * points + values);  // the map, the points chosen, all of them
  float *chosen = memory.data() + in_map, *all = chosen + 3 * points;
  to_f32(stored_.element, stored, stored_.elements(), all);
  if (selected_.empty()) {
    chosen = all;
  } else {
    for (size_t i = 0; i < points; ++i) std::copy_n(all + 3 * selected_[i], 3, chosen + 3 * i);
  }
  if (!radius_) return chosen;
  contact_map(chosen, points, *radius_, memory.data());
  return memory.data();
}

Field derived_field(const Field& stored, const Derivation& derivation) {
  if (stored.coded || derivation.resized) return ImageField(stored, derivation).field();
  return DerivedField(stored, derivation).field();
}

Shape shape_after(const Field& stored, const FieldSteps& steps) {
  return placed_shape(derived_field(stored, steps.derivation), steps.placement);
}

}  // namespace tutti::data
