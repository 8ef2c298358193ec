#pragma once
// A tensor's elements in the plain layout.

#include <vector>

#include "tutti/tensor/tensor_desc.h"

namespace tutti {

/// `x` as it lies in `desc`, f32; row-major into `plain`.
void to_plain(const TensorDesc& desc, const float* x, std::vector<float>& plain);

}  // namespace tutti
