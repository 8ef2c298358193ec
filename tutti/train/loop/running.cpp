#include "tutti/train/loop/running.h"

#include <cmath>

#include "tutti/base/error.h"
#include "tutti/train/loop/resume.h"
#include "tutti/train/settings/resume_check.h"

namespace tutti::train {
namespace {

constexpr const char* kPatience = "patience";

/// run.replicas = 0 means one per rank, but a resumed run has as many as it began with.
config::RunConfig with_replicas(config::RunConfig config,
                                const std::optional<keep::Checkpoint>& resumed) {
  if (config.run.replicas == 0 && resumed) config.run.replicas = replicas_of(resumed->info);
  return config;
}

RunGoal goal_of_run(const config::RunConfig& config, const data::Dataset& train, int64_t batch) {
  Goal goal = goal_of(config, model_spec(config, train, batch));
  const Metric& metric = *goal.metric;
  RunGoal all{.goal = std::move(goal),
              .patience = Patience(metric, config.run.min_improvement),
              .waits = config.run.patience > 0};
  if (config.schedule.name == config::ScheduleKind::plateau) all.plateau.emplace(metric, config);
  return all;
}

}  // namespace

double RunGoal::quality() const {
  const auto at = metrics.find(std::string(goal.metric->name()));
  return at == metrics.end() ? trace::kNotMeasured : at->second;
}

void RunGoal::save(std::map<std::string, double>& kept) const {
  for (const auto& [name, value] : metrics)
    if (std::isfinite(value)) kept[name] = value;
  if (waits) patience.save(kPatience, kept);
  if (plateau) plateau->save(kept);
}

void RunGoal::restore(const std::map<std::string, double>& kept) {
  patience.restore(kPatience, kept);
  if (plateau) plateau->restore(kept);
}

Running::Running(const TrainerSpec& of)
    : spec(of), comm(*of.communicator), past{.checkpoint = open_resume(comm, of.place)},
      config(with_replicas(of.config, past.checkpoint)),
      shape(config, *of.data.train, of.machine.has_value(), comm),
      goal(goal_of_run(config, *of.data.train, shape.batch.local)),
      display({.terminal = of.terminal && comm.rank() == 0}),
      interval(shape.batches.local_count()) {}

bool Running::every_epochs(double epochs, int64_t at) const {
  if (epochs <= 0) return false;
  const auto steps =
      std::max<int64_t>(1, std::llround(epochs * static_cast<double>(shape.steps_per_epoch())));
  return at % steps == 0;
}

bool Running::log_due(int64_t at) const {
  return at % config.run.log_every == 0 || at % shape.steps_per_epoch() == 0;
}

bool Running::checkpoint_due(int64_t at) const {
  return (config.checkpoint.every_steps > 0 && at % config.checkpoint.every_steps == 0) ||
         every_epochs(static_cast<double>(config.checkpoint.every_epochs), at);
}

void Running::finish_update() {
  training->finish_update();
  note_norms();
}

void Running::settle(plan::Kept what) {
  training->settle(what);
  note_norms();
}

void Running::note_norms() {
  const GradientNorms norms = training->take_gradient_norms();
  if (!std::isfinite(norms.sum)) {
    together = !rounds->has_model();  // otherwise only this rank sees it
    throw NumericError(
        fmt::format("the norm of the gradient is {} at step {}, although each replica's gradient "
                    "is finite: their sum or its squares are too large; {}; lower optimizer.lr or "
                    "look at the data",
                    std::isnan(norms.sum) ? "NaN" : "infinite", norms.last > 0 ? norms.last : step,
                    what_is_left()));
  }
  interval.norms += norms;
}

void Running::keep_best(int64_t at, double value) {
  left.best = at;
  left.best_value = value;
  left.best_text = to_text(*goal.goal.metric, value);
}

// The folder decides, since files may have been removed. A branch has written nothing yet, and
// continues from a checkpoint elsewhere. A folder that cannot be listed is reported as such: this
// text is part of another error's message, which it must not replace.
std::string Running::what_is_left(int64_t at) const try {
  if (finish_checkpoint) finish_checkpoint();
  int64_t last = keep::newest_step(spec.place.checkpoints);
  // It may be whole if only updating its links has failed.
  if (last == at && left.last != at)
    return fmt::format("the checkpoint of step {} itself is whole", at);
  if (last < 0 && left.last == first_step) last = left.last;
  if (last >= 0) return fmt::format("the last checkpoint, of step {}, is from before it", last);
  return left.last < 0
             ? "there is no checkpoint yet"
             : fmt::format("there is no checkpoint in '{}' any more", spec.place.checkpoints);
} catch (const IntactFileError& error) {
  return error.what();
}

trace::ScopedSpan Running::span(const char* name) {
  return spans ? trace::ScopedSpan(&*spans, spans->name(name), spans->lane("trainer"))
               : trace::ScopedSpan(nullptr, {}, 0);
}

}  // namespace tutti::train
