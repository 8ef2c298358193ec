#pragma once
// What a configuration means for each part of the system.

#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/exchange/exchange.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/models/block/model.h"
#include "tutti/trace/record.h"
#include "tutti/train/metrics/metrics.h"
#include "tutti/train/network/network.h"
#include "tutti/train/network/optimizer.h"
#include "tutti/train/network/schedule.h"

namespace tutti {

ModelSpec model_spec(const RunConfig& config, const data::Dataset& dataset, int64_t batch);
/// Without a data set: fields, a sample's shape and, where model.classes is 0, outputs are the
/// model's own.
ModelSpec model_spec(const RunConfig& config, int64_t batch);
/// The fields that the network learns: those of data.target, else the data set's second.
std::vector<data::Field> target_fields(const RunConfig& config, const data::Dataset& dataset);
/// As a checkpoint keeps them.
std::vector<LearnedField> learned_fields(const std::vector<data::Field>& targets);
/// And back, as far as a network depends on them: of classes the number, and no names.
std::vector<data::Field> fields_of(const std::vector<LearnedField>& learned);
/// What the ranks of a run share.
PartGrid part_grid(const ParallelSection& parallel, int64_t ranks, int64_t rank);
/// How a run cuts large samples.
SplitSettings split_settings(const RunConfig& config);
/// Everything but the choices. batch: samples of a replica.
NetworkSpec network_spec(const RunConfig& config, const data::Dataset& dataset, int64_t batch);
/// Everything but the compression, which depends on the network's buckets.
ExchangeSettings exchange_settings(const CommSection& comm);
OptimizerSettings optimizer_settings(const OptimizerSection& optimizer);
/// The schedule spans run.epochs; run.max_steps cuts a run short without changing it, unless
/// run.epochs is 0.
LearningRateSettings learning_rate_settings(const RunConfig& config, int64_t steps_per_epoch,
                                            int64_t global_batch);
/// What happens to the data set's fields: data.transforms, and where a field has none there, the
/// data set's own. ConfigError naming the line that cannot be understood.
std::vector<data::FieldSteps> field_steps(const DataSection& data);
/// Fills the tensors of a batch from a data set.
data::SampleWriter sample_writer(const RunConfig& config, const data::Dataset& dataset,
                                 const std::vector<data::BatchField>& batch);

/// What the predictions of a network learn.
std::set<TaskKind> tasks_of(const ModelSpec& model);
/// Nothing where they do not follow from the configuration alone.
std::optional<std::set<TaskKind>> tasks_of(const RunConfig& config);

/// What a run wants to reach: run.target of run.metric, or of the task's first metric.
struct Goal {
  std::vector<std::shared_ptr<const Metric>> metrics;  ///< of the task
  const Metric* metric = nullptr;                      ///< one of them
  double target = 0;                                   ///< 0: none

  bool reached_by(double value) const {
    return target > 0 && (metric->higher_is_better() ? value >= target : value <= target);
  }
  /// Never where the value is NaN or the metric's worst().
  bool better(double value, double than) const {
    if (std::isnan(than)) than = metric->worst();
    return metric->higher_is_better() ? value > than : value < than;
  }
  /// As the record names it; nothing without a target.
  std::optional<Target> in_record() const;
};
/// Writes what Evaluated::losses wants; nothing where the goal has no such loss, or the network
/// cannot say it (EvaluationNetwork::own_losses): then the goal has it no longer. ConfigError where
/// it is the goal's metric.
std::optional<data::SampleWriter> loss_writer(const RunConfig& config, const data::Dataset& dataset,
                                              const EvaluationNetwork& network, Goal& goal);
/// ConfigError for a metric that the model does not have, or a target that it cannot have.
Goal goal_of(const RunConfig& config, const ModelSpec& model);
/// Before the data set is known: where classes are not, the task may have a metric more. Nothing
/// where the task follows from the data set.
std::optional<Goal> goal_of(const RunConfig& config);

/// Weight updates of the whole run: run.epochs, cut off at run.max_steps.
int64_t total_steps(const RunSection& run, int64_t steps_per_epoch);

/// What ends a run there, and how its command goes on beyond `step`.
struct RunLimit {
  std::string text;   ///< "run.max_steps = 20 ends"
  std::string flags;  ///< " --max-steps N   (N above 20)"
};
RunLimit run_limit(const RunSection& run, int64_t steps_per_epoch, int64_t step);

}  // namespace tutti
