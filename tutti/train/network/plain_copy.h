#pragma once
// Copies a tensor's elements to the plain layout.

#include <vector>

#include "tutti/tensor/tensor_desc.h"

namespace tutti::train {

/// Copies `x`, f32 in the layout of `desc`, to `plain`, row-major.
void to_plain(const TensorDesc& desc, const float* x, std::vector<float>& plain);

}  // namespace tutti::train
