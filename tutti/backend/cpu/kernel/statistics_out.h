#pragma once
// What ends the statistics of a batch norm, wherever the sums over its values come from.

#include <cmath>
#include <cstdint>

#include "tutti/ops/batch_norm.h"

namespace tutti {

/// Where the statistics of a batch norm go, one number for each channel [C].
struct StatisticsOut {
  float *running_mean, *running_var;  ///< read, and moved towards the batch's
  float *mean, *inv_std;              ///< written: what is normalised by

  /// Ends channel c, of `count` >= 1 values with this mean and sum of squared deviations. One value
  /// has no variance, and leaves the running one as it is.
  void end(const NormStatistics& s, int64_t c, double count, double batch_mean,
           double deviations) const {
    float &average = running_mean[c], &spread = running_var[c];
    if (s.momentum > 0) {  // else a batch that is not finite would not leave them as they are
      average += s.momentum * (static_cast<float>(batch_mean) - average);
      if (count > 1) spread += s.momentum * (static_cast<float>(deviations / (count - 1)) - spread);
    }
    const double variance = s.running ? static_cast<double>(spread) : deviations / count;
    mean[c] = s.running ? average : static_cast<float>(batch_mean);
    inv_std[c] = static_cast<float>(1 / std::sqrt(variance + static_cast<double>(s.epsilon)));
  }
};

}  // namespace tutti
