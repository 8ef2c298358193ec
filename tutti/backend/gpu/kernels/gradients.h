#pragma once
// Arguments of the kernels of gradients.cu, which work on whole arenas of gradients: they look for
// numbers that are not finite, keep such gradients from the weights, and add up micro-batches.

#include <cstdint>

namespace tutti::backend {

constexpr int kGradientThreads = 256;
/// Floats that one block goes through; arenas have whole packs of 4.
constexpr int64_t kGradientRun = 16384;

/// Findings, in memory of the device.
struct GradientFindings {
  int64_t first;  ///< index of the first float of the last gradient that is not finite; -1: none
  int64_t any;    ///< 1 once any gradient had one
};

/// gradient_look: writes the index of the first float of each run that is not finite; a block has
/// a run.
struct GradientLookArgs {
  const float* gradients;
  int64_t floats;
  int64_t* firsts;  ///< [runs]; the largest number: none
};

/// gradient_judge: one block.
struct GradientJudgeArgs {
  const int64_t* firsts;
  int64_t runs;
  GradientFindings* findings;
};

/// gradient_stop: once any gradient was not finite, makes gradients and scalars 0, among them the
/// learning rate, so that an update leaves the weights as they are. A block has a run.
struct GradientStopArgs {
  const GradientFindings* findings;
  float* gradients;
  int64_t floats;
  float* scalars;
  int64_t scalar_floats;
};

/// gradient_add: into += from. A block has a run.
struct GradientAddArgs {
  float* into;
  const float* from;
  int64_t floats;
};

}  // namespace tutti::backend
