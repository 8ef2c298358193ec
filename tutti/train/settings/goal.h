#pragma once
// The goal of a run: the metric and the value to reach; and the limit that ends it.

#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/models/block/model.h"
#include "tutti/trace/record.h"
#include "tutti/train/metrics/metrics.h"
#include "tutti/train/network/network.h"

namespace tutti::train {

/// Returns the tasks of a network's predictions.
std::set<models::TaskKind> tasks_of(const models::ModelSpec& model);
/// Returns nothing if they do not follow from the configuration alone.
std::optional<std::set<models::TaskKind>> tasks_of(const config::RunConfig& config);

/// The goal of a run: run.target for run.metric, or for the task's first metric.
struct Goal {
  std::vector<std::shared_ptr<const Metric>> metrics;  ///< the task's metrics
  const Metric* metric = nullptr;                      ///< one of them
  double target = 0;                                   ///< 0: none

  bool reached_by(double value) const {
    return target > 0 && (metric->higher_is_better() ? value >= target : value <= target);
  }
  /// Returns false if the value is NaN or the metric's worst().
  bool better(double value, double than) const {
    if (std::isnan(than)) than = metric->worst();
    return metric->higher_is_better() ? value > than : value < than;
  }
  /// Returns the goal as the record names it; nothing without a target.
  std::optional<trace::Target> in_record() const;
};
/// Returns the writer for Evaluated::losses; nothing if the goal has no such loss, or if the
/// network cannot compute it (EvaluationNetwork::own_losses), in which case it is removed from the
/// goal. Throws ConfigError if it is the goal's metric.
std::optional<data::SampleWriter> loss_writer(const config::RunConfig& config,
                                              const data::Dataset& dataset,
                                              const EvaluationNetwork& network, Goal& goal);
/// Throws ConfigError for a metric that the model does not have, or an impossible target.
Goal goal_of(const config::RunConfig& config, const models::ModelSpec& model);
/// Does the same before the data set is known: while classes are unknown, the task may have one
/// more metric. Returns nothing if the task follows from the data set.
std::optional<Goal> goal_of(const config::RunConfig& config);

/// Returns the weight updates of the whole run: run.epochs, cut off at run.max_steps.
int64_t total_steps(const config::RunSection& run, int64_t steps_per_epoch);

/// The limit that ends a run, and the flags with which its command continues beyond `step`.
struct RunLimit {
  std::string text;   ///< "run.max_steps = 20 ends"
  std::string flags;  ///< " --max-steps N   (N above 20)"
};
RunLimit run_limit(const config::RunSection& run, int64_t steps_per_epoch, int64_t step);

}  // namespace tutti::train
