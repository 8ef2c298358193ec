#include "tutti/train/settings/goal.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/train/settings/specs.h"

namespace tutti::train {

std::optional<trace::Target> Goal::in_record() const {
  if (target <= 0) return std::nullopt;
  return trace::Target{.metric = std::string(metric->name()),
                       .value = target,
                       .higher_is_better = metric->higher_is_better()};
}

std::set<models::TaskKind> tasks_of(const models::ModelSpec& model) {
  std::set<models::TaskKind> tasks;
  for (const models::Objective& objective : objectives_of(model)) tasks.insert(*objective.task);
  return tasks;
}

std::optional<std::set<models::TaskKind>> tasks_of(const config::RunConfig& config) {
  if (!config.model.library.empty()) return std::nullopt;  // its models may not be loaded yet
  const models::ModelSpec model = model_alone(config);
  return tasks_known(model) ? std::optional(tasks_of(model)) : std::nullopt;
}

std::optional<Goal> goal_of(const config::RunConfig& config) {
  models::ModelSpec model = model_alone(config);
  model.classes = INT64_MAX;
  return tasks_known(model) ? std::optional(goal_of(config, model)) : std::nullopt;
}

std::optional<data::SampleWriter> loss_writer(const config::RunConfig& config,
                                              const data::Dataset& dataset,
                                              const EvaluationNetwork& network, Goal& goal) {
  const auto own =
      std::ranges::find_if(goal.metrics, [](const auto& m) { return m->of_own_losses(); });
  if (own == goal.metrics.end()) return std::nullopt;
  if (network.own_losses) return sample_writer(config, dataset, network.own_losses->batch());
  if (goal.metric == own->get())
    throw ConfigError(
        "run.metric = \"loss\": losses that a model writes itself are not evaluated where ranks "
        "share layers, stages or tables, or where it writes them in spec().mode == Mode::train "
        "alone instead of where training() is true: name another metric");
  goal.metrics.erase(own);
  return std::nullopt;
}

Goal goal_of(const config::RunConfig& config, const models::ModelSpec& model) {
  Goal goal{.metrics = metrics_of(model), .target = config.run.target};
  goal.metric = config.run.metric.empty() ? goal.metrics.front().get()
                                          : &find_metric(goal.metrics, config.run.metric);
  if (goal.metric->is_fraction() && goal.target > 1)
    throw ConfigError(fmt::format("run.target must be between 0 and 1, is {}: {} is a fraction",
                                  config.run.target, goal.metric->name()));
  return goal;
}

namespace {

/// Returns INT64_MAX if run.epochs does not limit the run.
int64_t steps_of_epochs(const config::RunSection& run, int64_t steps_per_epoch) {
  const bool countable = steps_per_epoch == 0 || run.epochs < INT64_MAX / steps_per_epoch;
  return run.epochs > 0 && countable ? run.epochs * steps_per_epoch : INT64_MAX;
}

}  // namespace

int64_t total_steps(const config::RunSection& run, int64_t steps_per_epoch) {
  return std::min(steps_of_epochs(run, steps_per_epoch),
                  run.max_steps > 0 ? run.max_steps : INT64_MAX);
}

RunLimit run_limit(const config::RunSection& run, int64_t steps_per_epoch, int64_t step) {
  const int64_t total = total_steps(run, steps_per_epoch);
  const std::string epochs = fmt::format("run.epochs = {}", run.epochs),
                    steps = fmt::format("run.max_steps = {}", run.max_steps);
  const int64_t epochs_done = (step + steps_per_epoch - 1) / steps_per_epoch;
  if (run.max_steps != total)
    return {epochs + " ends", fmt::format(" --epochs N   (N above {})", epochs_done)};
  if (steps_of_epochs(run, steps_per_epoch) != total)
    return {steps + " ends", fmt::format(" --max-steps N   (N above {})", step)};
  return {fmt::format("{} and {} end", epochs, steps),
          fmt::format(" --epochs N --max-steps M   (N above {}, M above {})", epochs_done, step)};
}

}  // namespace tutti::train
