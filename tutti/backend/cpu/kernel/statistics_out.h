#pragma once
// Ends the statistics of a batch norm, wherever the sums over its values come from.

#include <cmath>
#include <cstdint>

#include "tutti/ops/batch_norm.h"

namespace tutti::backend {

/// The outputs of a batch norm's statistics, one number for each channel [C].
struct StatisticsOut {
  float *running_mean, *running_var;  ///< read, and moved towards the batch's
  float *mean, *inv_std;              ///< written: the numbers to normalise by

  /// Ends channel c, with `count` >= 1 values of this mean and sum of squared deviations. A single
  /// value has no variance, and does not change the running one.
  void end(const ops::NormStatistics& s, int64_t c, double count, double batch_mean,
           double deviations) const {
    float &average = running_mean[c], &spread = running_var[c];
    if (s.momentum > 0) {  // otherwise a batch that is not finite would change them
      average += s.momentum * (static_cast<float>(batch_mean) - average);
      if (count > 1) spread += s.momentum * (static_cast<float>(deviations / (count - 1)) - spread);
    }
    const double variance = s.running ? static_cast<double>(spread) : deviations / count;
    mean[c] = s.running ? average : static_cast<float>(batch_mean);
    inv_std[c] = static_cast<float>(1 / std::sqrt(variance + static_cast<double>(s.epsilon)));
  }
};

}  // namespace tutti::backend
