#pragma once
// Quality of a classifier, from its logits, on the host.

#include <cstdint>
#include <span>

namespace tutti {

/// Sums over samples; add up those of batches and ranks. The result does not depend on the order:
/// each sample's cross entropy is rounded to a multiple of 2^-24, and such sums are exact up to
/// 2^29.
struct ClassifierQuality {
  int64_t samples = 0;
  int64_t correct = 0;  ///< the largest logit is the label's; of equal ones the first counts; never
                        ///< where a logit is NaN
  double cross_entropy = 0;  ///< natural logarithm, no label smoothing

  ClassifierQuality& operator+=(const ClassifierQuality& other) {
    samples += other.samples;
    correct += other.correct;
    cross_entropy += other.cross_entropy;
    return *this;
  }
  double accuracy() const {
    return samples > 0 ? static_cast<double>(correct) / static_cast<double>(samples) : 0;
  }
  double loss() const { return samples > 0 ? cross_entropy / static_cast<double>(samples) : 0; }
};

/// logits [labels.size(), classes], row-major. Only the first labels.size() rows count. Computed in
/// double precision. Throws ConfigError naming the sample for a label outside [0, classes).
ClassifierQuality classifier_quality(std::span<const float> logits, std::span<const int32_t> labels,
                                     int64_t classes);

}  // namespace tutti
