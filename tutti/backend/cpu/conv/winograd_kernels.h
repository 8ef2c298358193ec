#pragma once
// The two kernels of winograd_conv.cpp.

#include <memory>

#include "tutti/backend/backend.h"
#include "tutti/backend/cpu/conv/winograd.h"

namespace tutti::backend::winograd {

/// Computes y from x, or dx from dy as the convolution that leads there.
struct DataProblem {
  Sliding sliding;
  int64_t samples = 0, from = 0, to = 0;  ///< from: channels that are read; to: channels that are
                                          ///< made
  /// Weights lie as [to / 16, taps, from, 16]. `mirrored`: the taps from the last to the first.
  bool mirrored = false;
  bool bias = false, relu = false;
  float slope = 0;  ///< slope of a leaky ReLU
};
std::unique_ptr<Kernel> make_data_kernel(const DataProblem& problem, DType type);

/// Computes dw from x and dy, as [outputs / 16, taps, channels, 16]. Without a team a thread's
/// state holds sums of points, which finish() transforms.
struct FilterProblem {
  Sliding sliding;
  int64_t samples = 0, channels = 0, outputs = 0;
  int team = 0;  ///< number of parts that share the outputs, each with all samples; 0: not shared
};
std::unique_ptr<Kernel> make_filter_kernel(const FilterProblem& problem, DType type);

}  // namespace tutti::backend::winograd
