#pragma once
// Decides whether a field, after its transforms, fits a tensor of the network.

#include <array>

#include "tutti/data/field.h"
#include "tutti/data/transform/steps.h"
#include "tutti/tensor/tensor_desc.h"

namespace tutti::data {

/// For each axis of a placed field: the dimension of the batch's tensor (from 1) along which it
/// lies; 0: the axis has one element, and the tensor lacks the dimension.
using FieldAxes = std::array<int, Shape::kMaxRank>;

/// Matches a field's axes with a tensor's. Extents of 1 count as absent if the other side lacks
/// them: a number fits [N, 1], a mask [1, H, W] fits [N, H, W], and the reverse. ConfigError naming
/// the field, both extents and the remedy if they do not fit otherwise.
FieldAxes fitted_axes(const Field& stored, const Shape& placed, const TensorDesc& batch);

/// ConfigError if two fields with the same rows and columns are mirrored, turned or shifted
/// differently in training, as an image without its mask.
void check_moved_same(const Field& field, const Placement& placement, const Field& other,
                      const Placement& of_other);

/// `classes`: number of classes that the network outputs; 0: it takes no class numbers. ConfigError
/// if the field is known to have more, or the number is unknown and the network has one output.
void check_class_count(const Field& field, int64_t classes);
/// Checks the stored elements of sample `index`, for a field with an unknown number of classes.
/// ConfigError naming field, sample and remedy.
void check_class_numbers(const Field& field, int64_t classes, const void* stored, int64_t index);

}  // namespace tutti::data
