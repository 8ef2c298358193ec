#pragma once
// The gradient of a convolution's weights as a product of matrices. Private to this folder.

#include <memory>

#include "tutti/backend/backend.h"
#include "tutti/backend/cpu/matrix/matrix_rows.h"

namespace tutti::backend::matrix {

struct WeightsProblem {
  Lattice lattice;  ///< lattice of y
  int64_t samples = 0, x_pixels = 0;
  int64_t channels = 0, outputs = 0;
  int64_t chunk = int64_t{1} << 19;  ///< the most elements of dy that are put in panels at a time
  bool whole = false;  ///< each part of the team makes its share of the panels, from all samples
};

/// Makes the kernel of (x, dy) -> dw, f32 [K/16, kernel..., C, 16]. x and dy are channels last
/// and of type f32, or bf16: then products are exact and their sums f32, fast where kFastPairs
/// (matrix_tile.h).
std::unique_ptr<Kernel> make_weights_kernel(const WeightsProblem& problem, DType type);

}  // namespace tutti::backend::matrix
