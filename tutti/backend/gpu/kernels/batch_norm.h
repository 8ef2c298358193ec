#pragma once
// Arguments of the kernels of batch_norm.cu. All numbers by channel are f32 [C]; activations have
// the type and the form in memory that the function's name says.

#include <cstdint>

#include "tutti/backend/gpu/kernels/channel_sums.h"

namespace tutti::backend {

/// The end of a batch norm's statistics: the running averages and what to normalise by.
struct NormStatisticsOut {
  float *running_mean, *running_var;
  float *mean, *inv_std;
  float epsilon, momentum;
  bool running;  ///< normalise by the running averages
};

/// norm_moments_end: statistics from the partial moments or, without running averages, `to.mean`
/// and, in `to.inv_std`, the variance.
struct NormMomentsEndArgs {
  float* partials;  ///< [chunks, 2, C]
  NormStatisticsOut to;
  int64_t runs;       ///< runs of a channel
  int32_t per_block;  ///< runs of a chunk; the last one may have fewer
  int32_t of_run;     ///< values of a channel in a run
  int32_t chunks, channels;
};

/// norm_moments.TYPE.FORM: the mean of y in each block, and the sum of the squares of deviations
/// from it.
struct NormMomentsArgs {
  ChannelWalk walk;
  const void* y;
  NormMomentsEndArgs end;
  unsigned* counters;  ///< by group; null: the end is a launch of its own
};

constexpr int kMostNormRanks = 128;

/// norm_merge: statistics from the means and variances of several ranks.
struct NormMergeArgs {
  const float* mean[kMostNormRanks];
  const float* variance[kMostNormRanks];
  int64_t count[kMostNormRanks];  ///< values of a channel
  NormStatisticsOut to;
  int32_t ranks, channels;
};

/// The second statistic of a batch norm.
struct NormSecond {
  const float* values;
  bool variance;  ///< it is the variance, not 1 / sqrt(variance + epsilon)
  float epsilon;
};

/// norm_apply.TYPE.FORM: z = relu((y - mean) * gamma * inv_std + beta + residual).
struct NormApplyArgs {
  ChannelWalk walk;
  const void *y, *residual;  ///< the residual may be null
  const float *mean, *gamma, *beta;
  NormSecond second;
  void* z;
  bool relu;
};

/// norm_grad_sums_end: dbeta = sum g, dgamma = (sum g * (y - mean)) * inv_std.
struct NormGradSumsEndArgs {
  float* partials;  ///< [chunks, 2, C]
  NormSecond second;
  float *dgamma, *dbeta;
  int32_t chunks, channels;
};

/// norm_grad_sums[.relu][.two].TYPE.FORM: g = (dz + dz2 if two) * ([z > 0] if relu); sums of g and
/// of g * (y - mean) by block.
struct NormGradSumsArgs {
  ChannelWalk walk;
  const void *dz, *y, *z, *dz2;
  const float* mean;
  void* g;  ///< may be dz
  NormGradSumsEndArgs end;
  unsigned* counters;  ///< by group; null: the end is a launch of its own
};

/// norm_grad_apply.TYPE.FORM: dy = scale * g - scale * dbeta / M - (y - mean) * scale * inv_std *
/// dgamma / M, with scale = gamma * inv_std.
struct NormGradApplyArgs {
  ChannelWalk walk;
  const void *g, *y;
  const float *mean, *inv_std, *gamma, *dgamma, *dbeta;
  void* dy;             ///< may be g
  float inverse_count;  ///< 1 / M
};

/// norm_grad_scale.TYPE.FORM: dy = gamma * inv_std * g.
struct NormGradScaleArgs {
  ChannelWalk walk;
  const void* g;
  const float* gamma;
  NormSecond second;
  void* dy;  ///< may be g
};

}  // namespace tutti::backend
