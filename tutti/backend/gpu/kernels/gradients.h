#pragma once
// Arguments of the kernels of gradients.cu, which work on whole arenas of gradients: they look for
// numbers that are not finite, keep such gradients from the weights, and add up micro-batches.

#include <cstdint>

namespace tutti::backend {

constexpr int kGradientThreads = 256;
/// Floats that one block goes through; arenas have whole packs of 4.
constexpr int64_t kGradientRun = 16384;

/// Numbers that may be brought beside what is found.
constexpr int kMostBrought = 32;

/// Findings, in memory of the device.
struct GradientFindings {
  int64_t first;  ///< index of the first float of the last gradient that is not finite; -1: none
  float brought[kMostBrought];
  int64_t any;          ///< 1 once any gradient had one
  unsigned counter[2];  ///< counts the blocks of gradient_look
};

/// gradient_look: looks for the first float that is not finite, and brings numbers beside what it
/// finds, so that one copy has all. A block has a run.
struct GradientLookArgs {
  float* gradients;
  int64_t floats;
  int64_t* firsts;  ///< [runs], by run; the largest number: none
  GradientFindings* findings;
  const float* numbers[kMostBrought];
  int32_t count;  ///< numbers
  /// Not null: as gradient_stop, with the same gradients. One block does that, because it is seldom
  /// to do.
  float* scalars;
  int64_t scalar_floats;
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
