#pragma once
// A DerivedField is made of a whole field by steps before elements are placed: coordinates of
// chosen atoms, maps of contacts. (For coded images see image_field.h.)

#include <optional>
#include <vector>

#include "tutti/data/field.h"
#include "tutti/data/transform/steps.h"
#include "tutti/data/transform/values.h"

namespace tutti::data {

/// Immutable; usable from any thread.
class DerivedField {
 public:
  /// Reads the topology, if there is one. ConfigError naming the field if the steps do not fit it,
  /// with both numbers of atoms and the files if these differ; BadFile for the topology.
  DerivedField(const Field& stored, const Derivation& derivation);

  /// Returns the result's field: f32, with the same name, without statistics or classes.
  const Field& field() const { return made_; }
  /// Computes the result from the elements of a stored sample and keeps it in `memory`. BadFile if
  /// a unit cell is missing, or so small that a point may have two images within the radius.
  const float* make(const void* stored, std::vector<float>& memory) const;

 private:
  Field stored_, made_;
  std::vector<int64_t> selected_;  ///< empty: all points
  std::optional<float> radius_;
  bool periodic_ = false;
};

/// Returns the field after its derivation.
Field derived_field(const Field& stored, const Derivation& derivation);
/// Returns a field's shape after all its steps.
Shape shape_after(const Field& stored, const FieldSteps& steps);
/// Returns the function of the field's value steps. ConfigError as ValueFunction.
ValueFunction value_function(const Field& stored, const FieldSteps& steps);

}  // namespace tutti::data
