#pragma once
// Whether a field, as its transforms leave it, is what a tensor of the network takes.

#include <array>

#include "tutti/data/field.h"
#include "tutti/data/transform/steps.h"
#include "tutti/tensor/tensor_desc.h"

namespace tutti::data {

/// Of each axis of a placed field the dimension of the batch's tensor (from 1) that it lies along;
/// 0: it has one element, and the tensor no such dimension.
using FieldAxes = std::array<int, Shape::kMaxRank>;

/// Extents of 1 count as absent where the other side lacks them: a number fits [N, 1], a mask
/// [1, H, W] fits [N, H, W], and the reverse. ConfigError naming the field, both extents and the
/// remedy where they do not fit otherwise.
FieldAxes fitted_axes(const Field& stored, const Shape& placed, const TensorDesc& batch);

/// ConfigError where two fields of the same rows and columns are mirrored, turned or shifted
/// differently in training, as an image without its mask.
void check_moved_alike(const Field& field, const Placement& placement, const Field& other,
                       const Placement& of_other);

/// `classes`: class numbers that the network has outputs for; 0: it takes no class numbers.
/// ConfigError where the field is known to have more, or the network cannot tell any apart.
void check_class_count(const Field& field, int64_t classes);
/// The stored elements of sample `index` of a field whose number of classes is not known.
/// ConfigError naming field, sample and remedy.
void check_class_numbers(const Field& field, int64_t classes, const void* stored, int64_t index);

}  // namespace tutti::data
