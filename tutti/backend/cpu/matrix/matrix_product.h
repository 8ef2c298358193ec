#pragma once
// Products of activations with weights that are rearranged on the way: convolutions of one tap,
// forward and for the data gradient, which read the f32 weights as the update leaves them. Each
// block of weights is brought into the first-level cache in the form that the innermost loop needs,
// and serves all positions there. So nothing is packed once a step, and no second copy of the
// weights is kept: with few positions, a step spends its time on that. Private to this folder.

#include <memory>

#include "tutti/backend/backend.h"

namespace tutti::backend::matrix {

struct ProductProblem {
  int64_t positions = 0;     ///< positions of all samples
  int64_t from = 0, to = 0;  ///< channels of a position in x and in y
  bool data = false;         ///< computes dx from dy: the sum runs over the weights' outputs
  bool bias = false;
  bool relu = false;
  float slope = 0;  ///< slope of a leaky ReLU
};

/// Makes the kernel of (x, w, [bias]) -> y, or (dy, w) -> dx. w is f32 [K/16, 1..., C, 16] for
/// both; x and y are channels last. x is of `type`, f32 or bf16: with bf16 weights are rounded to
/// it, products are exact and their sums f32. y is of type `results`, f32 or `type`.
std::unique_ptr<Kernel> make_product_kernel(const ProductProblem& problem, DType type,
                                            DType results);

}  // namespace tutti::backend::matrix
