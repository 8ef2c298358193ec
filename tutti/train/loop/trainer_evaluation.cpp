#include "tutti/train/loop/trainer_run.h"

#include <cmath>
#include <cstring>
#include <span>

#include "tutti/base/error.h"
#include "tutti/base/log.h"

namespace tutti {

void TrainerRun::average_statistics() {
  const size_t bytes = network().training.variables.statistic_bytes;
  if (rounds_->first_stands_for_all()) {
    std::memcpy(averaged_.data(), training_->weights().statistics(0), bytes);
    return comm_.broadcast({averaged_.data(), bytes}, 0);
  }
  const std::span<const float> mean = average_->average([&](int local, std::span<float> place) {
    std::memcpy(place.data(), training_->weights().statistics(local), bytes);
  });
  std::memcpy(averaged_.data(), mean.data(), bytes);
}

void TrainerRun::gather_shown() {
  const Weights& weights = training_->weights();
  if (shown_.bytes() == 0) return;
  const Variables& variables = weights.variables();
  if (rounds_->has_model())
    rounds_->model(
        {reinterpret_cast<float*>(shown_.data()), variables.trained_bytes / sizeof(float)});
  else
    exchange().share(weights.average(), shown_.data());
  std::memcpy(shown_.data() + variables.trained_bytes,
              weights.parameters() + variables.trained_bytes,
              variables.parameter_bytes - variables.trained_bytes);
}

std::byte* TrainerRun::shown_weights() {
  return shown_.bytes() > 0 ? shown_.data() : training_->weights().parameters();
}

double TrainerRun::quality() const {
  const auto at = result_.metrics.find(std::string(goal_.metric->name()));
  return at == result_.metrics.end() ? kNotMeasured : at->second;
}

std::string TrainerRun::stopped_early_words() const {
  return fmt::format("stopped early: no better {} for {} evaluation{}", goal_.metric->name(),
                     patience_.waited(), patience_.waited() == 1 ? "" : "s");
}

/// Of evaluations that are due: one more, where a run is cut, must not change how it goes on.
void TrainerRun::count_improvement() {
  patience_.add(quality());
  if (plateau_ && plateau_->add(quality()) && first())
    log::info("no better {}: the learning rate falls to {:.4g}", goal_.metric->name(),
              learning_rate(step_));
}

/// Such weights are no result, whether another step would have found out or this was the last.
void TrainerRun::require_finite_loss() {
  const auto loss = result_.metrics.find("loss");
  if (loss == result_.metrics.end() || std::isfinite(loss->second)) return;
  together_ = true;
  throw NumericError(fmt::format(
      "the {} loss is {} after {} steps: the last updates have spoilt the weights; {}; lower "
      "optimizer.lr or look at the data",
      spec_.data.judge_name(), std::isnan(loss->second) ? "NaN" : "infinite", step_,
      what_is_left()));
}

bool TrainerRun::evaluate() {
  const auto began = RunClock::Clock::now();
  const double train_seconds = clock_.train();
  const ScopedSpan span(spans(), span_name("evaluate"), span_lane());
  settle();
  average_statistics();
  gather_shown();
  const Quality all =
      evaluator_->run(spec_.data.judge().size(), static_cast<int>(config_.data.readers));
  std::string text;
  for (const auto& metric : goal_.metrics) {
    const double value = all.value(metric->name());
    result_.metrics[std::string(metric->name())] = value;
    text += (text.empty() ? "" : ", ") + to_text(*metric, value);
  }
  const double seconds = RunClock::since(began);
  clock_.add_pause(seconds);
  evaluation_seconds_ += seconds;
  target_reached_ = goal_.reached_by(quality());
  if (evaluation_due()) count_improvement();
  const bool best = config_.checkpoint.best && goal_.better(quality(), left_.best_value);
  require_finite_loss();
  if (!all.exact()) text += fmt::format(", auc in {} bins", ScoreBins::kBins);
  if (const std::string word = all.undefined(); !word.empty()) text += "; " + word;
  if (!first()) return best;
  EvalRecord line{.epoch = epochs_done(),
                  .step = step_,
                  .samples = all.samples(),
                  .seconds = seconds,
                  .wall_seconds = clock_.wall(),
                  .train_seconds = train_seconds};
  if (const auto seconds_there = rounds_->virtual_seconds()) line.virtual_seconds = *seconds_there;
  for (const auto& [name, value] : result_.metrics) line.set(name, value);
  if (!all.exact()) line.set("auc_bins", ScoreBins::kBins);
  reporter_->add(line);
  display_.note(fmt::format("epoch {:.2f}: {} {} ({} samples in {:.1f} s)", epochs_done(),
                            spec_.data.judge_name(), text, line.samples, seconds));
  if (target_reached_)
    reporter_->record().append(TargetReached{.epoch = epochs_done(),
                                             .step = step_,
                                             .wall_seconds = line.wall_seconds,
                                             .train_seconds = train_seconds,
                                             .value = quality()});
  return best;
}

}  // namespace tutti
