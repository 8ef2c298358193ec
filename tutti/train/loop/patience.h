#pragma once
// Patience: how long a metric has not become better.

#include <cstdint>
#include <map>
#include <string>

#include "tutti/train/metrics/metrics.h"

namespace tutti {

/// Counts evaluations since the last that was better than the best before by more than
/// `min_improvement`. A function of the values alone, so the same on every rank.
class Patience {
 public:
  Patience(const Metric& metric, double min_improvement)
      : metric_(&metric), min_improvement_(min_improvement) {}

  /// One evaluation more. NaN is no improvement.
  void add(double value);
  /// Counts from 0 again; what was best stays so.
  void begin_again() { waited_ = 0; }
  int64_t waited() const { return waited_; }

  /// Into and out of a checkpoint's metrics, as "NAME.METRIC.best" and "NAME.METRIC.waited". Of
  /// another metric, or of a run that did not count, it begins anew.
  void save(const std::string& name, std::map<std::string, double>& metrics) const;
  void restore(const std::string& name, const std::map<std::string, double>& metrics);

 private:
  std::string key(const std::string& name, const char* what) const;

  const Metric* metric_;
  double min_improvement_;
  bool any_ = false;
  double best_ = 0;
  int64_t waited_ = 0;
};

}  // namespace tutti
