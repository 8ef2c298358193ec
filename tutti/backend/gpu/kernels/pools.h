#pragma once
// Arguments of the kernels of pools.cu: a thread makes one pack of the result.

#include <cstdint>

namespace tutti::backend {

constexpr int kPoolThreads = 256;

/// One side of a pooling: activations [planes, d, h, w, channels], where a plane is a sample with
/// its channels last, or one channel of a sample. Missing dimensions are 1. A plane has less than
/// 2^31 elements.
struct PoolSide {
  int64_t plane;      ///< elements of a plane
  int32_t extent[3];  ///< extents of d, h, w
  int32_t step[3];    ///< elements between neighbours along d, h, w
};

/// The operands of a pooling or its gradient, and the packs of the result.
struct PoolPlaces {
  PoolSide x, y;
  int64_t count;  ///< packs that threads begin with: of the result
  int32_t packs;  ///< packs of a position
};

/// pool_max.TYPE.FORM, pool_average.TYPE.FORM and, from dy to dx, pool_max_grad.TYPE.FORM and
/// pool_average_grad.TYPE.FORM; the threads of pool_max_grad_apart and pool_average_grad_apart make
/// what belongs to a pack of dy.
struct PoolArgs {
  PoolPlaces places;
  int32_t kernel[3], stride[3], low[3];
  int32_t index_step[3];  ///< between the indices in a window of neighbours along d, h, w
  int32_t counted_low[3], counted_high[3];  ///< an average counts what of a window lies in between
  const void* from;                         ///< x, or dy
  uint8_t* winners;                         ///< like y: the maximum's index in its window
  void* to;                                 ///< y, or dx
};

/// resize.TYPE.FORM: y[i] = x[(first + i) / factor]; resize_grad.TYPE.FORM: its gradient.
struct ResizeArgs {
  PoolPlaces places;
  int32_t factor[3], first[3];
  const void* from;  ///< x, or dy
  void* to;          ///< y, or dx
};

}  // namespace tutti::backend
