#pragma once
// Patience: counts how long a metric has not improved.

#include <cstdint>
#include <map>
#include <string>

#include "tutti/train/metrics/metrics.h"

namespace tutti::train {

/// Counts evaluations since the last that exceeded the best one before by more than
/// `min_improvement`. A function of the values alone, so it is the same on every rank.
class Patience {
 public:
  Patience(const Metric& metric, double min_improvement)
      : metric_(&metric), min_improvement_(min_improvement) {}

  /// Adds one evaluation. NaN is no improvement.
  void add(double value);
  /// Counts from 0 again; the best value stays.
  void begin_again() { waited_ = 0; }
  int64_t waited() const { return waited_; }

  /// Stores into and restores from a checkpoint's metrics, as "NAME.METRIC.best" and
  /// "NAME.METRIC.waited". For another metric, or a run that did not count, it starts anew.
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

}  // namespace tutti::train
