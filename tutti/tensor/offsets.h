#pragma once
// The offset of an element is a sum of one term per dimension: what walks over tensors of any
// layout keep instead of a table of all elements.

#include <vector>

#include "tutti/tensor/layout.h"

namespace tutti {

/// The term of each index along `dim`, in elements.
std::vector<int64_t> offsets_along(const Shape& shape, const Layout& layout, int dim);

/// The distance between neighbours where all are the same (1 of a single element), else 0.
int64_t common_stride(const std::vector<int64_t>& offsets);

}  // namespace tutti
