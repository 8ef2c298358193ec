#include "tutti/train/loop/evaluation.h"

#include <cmath>
#include <cstring>
#include <span>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/train/settings/units.h"

namespace tutti::train {

namespace {

/// Returns the communicator over the ranks that each have the same kind of statistics.
comm::Communicator& same(Running& run) {
  return run.shape.grid.stages() > 1 ? run.exchange().communicator() : run.comm;
}

size_t statistic_bytes(const Running& run) {
  return run.network().training.variables.statistic_bytes;
}

}  // namespace

Evaluation::Evaluation(Running& run)
    : run_(run), averaged_(statistic_bytes(run)),
      average_(same(run), run.shape.with_statistics(),
               std::max<size_t>(statistic_bytes(run) / sizeof(float), 1)),
      writer_(sample_writer(run.config, run.spec.data.judge(), run.network().evaluation.batch())) {
  for (const std::string& sentence :
       unit_sentences(model_spec(run.config, *run.spec.data.train, run.shape.batch.local)))
    if (run.first()) log::info("{}", sentence);
  losses_ = loss_writer(run.config, run.spec.data.judge(), run.network().evaluation, run.goal.goal);
  evaluator_.emplace(Evaluated{.network = run.network().evaluation,
                               .backend = *run.spec.backend,
                               .communicator = run.comm,
                               .dataset = run.spec.data.judge(),
                               .writer = *writer_,
                               .losses = losses_ ? &*losses_ : nullptr},
                     run.goal.goal.metrics);
  if (run.training->weights().average() || run.rounds->has_model())
    shown_ = device::Buffer(run.network().training.variables.parameter_bytes);
  evaluator_->bind({.parameters = weights(),
                    .tables = run.training->weights().tables(),
                    .statistics = averaged_.data()});
}

void Evaluation::gather() {
  average_statistics();
  gather_weights();
}

void Evaluation::average_statistics() {
  const size_t bytes = run_.network().training.variables.statistic_bytes;
  if (run_.rounds->first_stands_for_all()) {
    std::memcpy(averaged_.data(), run_.training->weights().statistics(0), bytes);
    return run_.comm.broadcast({averaged_.data(), bytes}, 0);
  }
  const std::span<const float> mean = average_.average([&](int local, std::span<float> place) {
    std::memcpy(place.data(), run_.training->weights().statistics(local), bytes);
  });
  std::memcpy(averaged_.data(), mean.data(), bytes);
}

void Evaluation::gather_weights() {
  const Weights& weights = run_.training->weights();
  if (shown_.bytes() == 0) return;
  const plan::Variables& variables = weights.variables();
  if (run_.rounds->has_model())
    run_.rounds->model(
        {reinterpret_cast<float*>(shown_.data()), variables.trained_bytes / sizeof(float)});
  else
    run_.exchange().share(weights.average(), shown_.data());
  std::memcpy(shown_.data() + variables.trained_bytes,
              weights.parameters() + variables.trained_bytes,
              variables.parameter_bytes - variables.trained_bytes);
}

std::byte* Evaluation::weights() {
  return shown_.bytes() > 0 ? shown_.data() : run_.training->weights().parameters();
}

/// Counts only evaluations that are due: an extra one, where a run is cut, must not change its
/// course.
void Evaluation::count_improvement() {
  run_.goal.patience.add(run_.goal.quality());
  if (run_.goal.plateau && run_.goal.plateau->add(run_.goal.quality()) && run_.first())
    log::info("no better {}: the learning rate falls to {:.4g}", run_.goal.goal.metric->name(),
              run_.learning_rate(run_.step));
}

/// Such weights are no result, even if this was the last step.
void Evaluation::require_finite_loss() {
  const auto loss = run_.goal.metrics.find("loss");
  if (loss == run_.goal.metrics.end() || std::isfinite(loss->second)) return;
  run_.together = true;
  throw NumericError(fmt::format(
      "the {} loss is {} after {} steps: the last updates have spoilt the weights; {}; lower "
      "optimizer.lr or look at the data",
      run_.spec.data.judge_name(), std::isnan(loss->second) ? "NaN" : "infinite", run_.step,
      run_.what_is_left()));
}

bool Evaluation::evaluate() {
  const auto began = RunClock::Clock::now();
  const double train_seconds = run_.clock.train();
  const trace::ScopedSpan span = run_.span("evaluate");
  settle();
  gather();
  const Quality all =
      evaluator_->run(run_.spec.data.judge().size(), static_cast<int>(run_.config.data.readers));
  std::string text;
  for (const auto& metric : run_.goal.goal.metrics) {
    const double value = all.value(metric->name());
    run_.goal.metrics[std::string(metric->name())] = value;
    text += (text.empty() ? "" : ", ") + to_text(*metric, value);
  }
  const double seconds = RunClock::since(began);
  run_.clock.add_pause(seconds);
  run_.evaluation_seconds += seconds;
  run_.goal.reached = run_.goal.goal.reached_by(run_.goal.quality());
  if (run_.evaluation_due(run_.step)) count_improvement();
  const bool best = run_.config.checkpoint.best &&
                    run_.goal.goal.better(run_.goal.quality(), run_.left.best_value);
  require_finite_loss();
  if (!all.exact()) text += fmt::format(", auc in {} bins", ScoreBins::kBins);
  if (const std::string word = all.undefined(); !word.empty()) text += "; " + word;
  if (!run_.first()) return best;
  trace::EvalRecord line{.epoch = run_.epochs_done(),
                         .step = run_.step,
                         .samples = all.samples(),
                         .seconds = seconds,
                         .wall_seconds = run_.clock.wall(),
                         .train_seconds = train_seconds};
  if (const auto seconds_there = run_.rounds->virtual_seconds())
    line.virtual_seconds = *seconds_there;
  for (const auto& [name, value] : run_.goal.metrics) line.set(name, value);
  if (!all.exact()) line.set("auc_bins", ScoreBins::kBins);
  run_.reporter->add(line);
  run_.display.note(fmt::format("epoch {:.2f}: {} {} ({} samples in {:.1f} s)", run_.epochs_done(),
                                run_.spec.data.judge_name(), text, line.samples, seconds));
  if (run_.goal.reached)
    run_.reporter->record().append(trace::TargetReached{.epoch = run_.epochs_done(),
                                                        .step = run_.step,
                                                        .wall_seconds = line.wall_seconds,
                                                        .train_seconds = train_seconds,
                                                        .value = run_.goal.quality()});
  return best;
}

}  // namespace tutti::train
