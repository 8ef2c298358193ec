#pragma once
// DerivedField: what steps make of a field before its elements are placed: coordinates of chosen
// atoms, maps of contacts. (Of coded images image_field.h.)

#include <optional>
#include <vector>

#include "tutti/data/field.h"
#include "tutti/data/transform/steps.h"
#include "tutti/data/transform/values.h"

namespace tutti::data {

/// Immutable; any thread.
class DerivedField {
 public:
  /// Reads the topology, if one is named. ConfigError naming the field where the steps do not fit
  /// it, and both numbers of atoms and the files where these differ; BadFile of the topology.
  DerivedField(const Field& stored, const Derivation& derivation);

  /// What is made: f32, under the same name, of no known statistics or classes.
  const Field& field() const { return made_; }
  /// Of the elements of one stored sample. The result is kept in `memory`. BadFile where a cell is
  /// missing, or so small that a point may have two images within the radius.
  const float* make(const void* stored, std::vector<float>& memory) const;

 private:
  Field stored_, made_;
  std::vector<int64_t> selected_;  ///< empty: all points
  std::optional<float> radius_;
  bool periodic_ = false;
};

/// The field as its derivation leaves it.
Field derived_field(const Field& stored, const Derivation& derivation);
/// The shape in which a field leaves its steps.
Shape shape_after(const Field& stored, const FieldSteps& steps);
/// The function of its value steps. ConfigError as of ValueFunction.
ValueFunction value_function(const Field& stored, const FieldSteps& steps);

}  // namespace tutti::data
