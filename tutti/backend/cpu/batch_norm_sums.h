#pragma once
// Statistics of a batch norm: shifted sums within a tile; means and squared deviations are combined
// between tiles and threads as Chan, Golub and LeVeque (1983) do.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "tutti/backend/backend.h"
#include "tutti/backend/cpu/channel_walk.h"
#include "tutti/ops/batch_norm.h"

namespace tutti {

/// Numbers a channel [C]: the running averages, which end() updates, and what is normalised by.
struct StatisticsOut {
  void *running_mean, *running_var, *mean, *inv_std;

  /// Ends channel c, of `count` values with this mean and sum of squared deviations.
  void end(const NormStatistics& s, int64_t c, double count, double batch_mean,
           double deviations) const {
    const double unbiased = deviations / std::max(count - 1, 1.0);
    float &average = static_cast<float*>(running_mean)[c],
          &spread = static_cast<float*>(running_var)[c];
    average += s.momentum * (static_cast<float>(batch_mean) - average);
    spread += s.momentum * (static_cast<float>(unbiased) - spread);
    const double variance = s.running ? static_cast<double>(spread) : deviations / count;
    static_cast<float*>(mean)[c] = s.running ? average : static_cast<float>(batch_mean);
    static_cast<float*>(inv_std)[c] =
        static_cast<float>(1 / std::sqrt(variance + static_cast<double>(s.epsilon)));
  }
};

/// Makes the kernel of BatchNormStats or BatchNormMoments for activations of this type, f32 or
/// bf16; empty for other ops.
std::function<std::unique_ptr<Kernel>()> batch_norm_sums(const Op& op, const ChannelView& view,
                                                         DType activations);

}  // namespace tutti
