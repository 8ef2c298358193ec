#pragma once
// Plateau: the factor of a learning rate that falls while the metric does not improve.

#include <map>
#include <string>

#include "tutti/config/config.h"
#include "tutti/train/loop/patience.h"

namespace tutti::train {

/// The factor begins at 1. After every `patience` evaluations without an improvement it is
/// multiplied by `gamma`, but does not fall below `least`. Evaluations have the same value on every
/// rank, and so does the factor.
class Plateau {
 public:
  Plateau(const Metric& metric, const config::RunConfig& config)
      : patience_(metric, config.run.min_improvement), limit_(config.schedule.patience),
        gamma_(config.schedule.gamma), least_(config.schedule.final_factor) {}

  /// Adds an evaluation. Returns whether the factor fell.
  bool add(double value);
  double factor() const { return factor_; }

  /// Stores into and restores from a checkpoint's metrics.
  void save(std::map<std::string, double>& metrics) const;
  void restore(const std::map<std::string, double>& metrics);

 private:
  Patience patience_;
  int64_t limit_;
  double gamma_, least_, factor_ = 1;
};

}  // namespace tutti::train
