#pragma once
// Arguments of the plain convolutions. Products of matrices are convolutions, too: a dense layer
// has one position, and its window is a whole sample.

#include <cstdint>

#include "tutti/backend/gpu/kernels/loops.h"

namespace tutti::backend {

constexpr int kProductThreads = 256;  ///< threads of a block of all these kernels

/// The activation that a convolution ends in.
enum class ProductEnd : int32_t { none, relu, leaky_relu, sigmoid, tanh };

/// x [samples, groups * inputs, x_extent] * w [groups * outputs, inputs, window] = y [samples,
/// groups * outputs, y_extent], in three spatial dimensions. w is plain and f32. A kernel writes
/// one of the three from the two others.
struct ProductArgs {
  void *x, *y;
  float* w;
  const float* bias;             ///< by channel of the result, or null
  double* parts;                 ///< for w made in slices: [slices, elements of w]
  int64_t elements;              ///< elements of the result
  FastDivisor positions;         ///< positions of the result, if that is x or y
  int64_t x_step[5], y_step[5];  ///< distance of neighbours by dimension, in elements
  int32_t groups, inputs, outputs;
  int32_t x_extent[3], y_extent[3], window[3], stride[3], dilation[3], pad[3];
  int32_t weights;  ///< elements of w
  /// Sums for w are over rows: last dimensions of y. A slice has so many, the last one fewer.
  int32_t rows, rows_of_slice;
  int32_t slices;
  /// Blocks for w have so many of its elements, of several slices where there is room; neighbours
  /// have neighbouring elements. Of those with the same elements the last one adds up their slices.
  int32_t span;
  unsigned* counters;  ///< for w made in slices: by elements of a block
  ProductEnd end;
  float slope;  ///< the slope of leaky_relu
};

/// y = f(y + bias): what a product of a library lacks. y is [rows, channels]; a thread takes a pack
/// of 16 bytes, or one element where there are no packs.
struct ProductEndArgs {
  void* y;
  const float* bias;  ///< [channels], or null
  int64_t threads;
  FastDivisor channels;
  ProductEnd end;
  float slope;
  bool packs;  ///< channels are a multiple of a pack's, and y lies at a multiple of 16
};

}  // namespace tutti::backend
