#include "tutti/train/trainer_run.h"

#include <cstring>
#include <span>

#include "tutti/base/error.h"

namespace tutti {

void TrainerRun::average_statistics() {
  const size_t bytes = network_->training.variables.statistic_bytes;
  const std::span<const float> mean = average_->average([&](int local, std::span<float> place) {
    std::memcpy(place.data(), weights_->statistics(local), bytes);
  });
  std::memcpy(averaged_.data(), mean.data(), bytes);
}

bool TrainerRun::reaches_target(double accuracy) const {
  return config_.run.target > 0 && accuracy >= config_.run.target;
}

bool TrainerRun::evaluate() {
  const auto began = RunClock::Clock::now();
  const double train_seconds = clock_.train();
  const ScopedSpan span(spans(), span_name("evaluate"), span_lane());
  executor_->settle();
  average_statistics();
  const ClassifierQuality local =
      evaluator_->run(data::evaluation_range(spec_.test->size(), comm_.rank(), comm_.size()),
                      static_cast<int>(config_.data.readers));
  double sums[] = {static_cast<double>(local.samples), static_cast<double>(local.correct),
                   local.cross_entropy};
  comm_.sum(sums);
  result_.accuracy = sums[1] / sums[0];
  result_.loss = sums[2] / sums[0];
  const double seconds = RunClock::since(began);
  clock_.add_pause(seconds);
  evaluation_seconds_ += seconds;
  target_reached_ = reaches_target(result_.accuracy);
  const bool best = config_.checkpoint.best && !(result_.accuracy <= left_.best_accuracy);
  if (!first()) return best;
  EvalRecord line{.epoch = epochs_done(),
                  .step = step_,
                  .samples = static_cast<int64_t>(sums[0]),
                  .accuracy = result_.accuracy,
                  .loss = result_.loss,
                  .seconds = seconds,
                  .wall_seconds = clock_.wall(),
                  .train_seconds = train_seconds};
  reporter_->add(line);
  display_.note(
      fmt::format("epoch {:.2f}: test accuracy {:.2f} %, loss {:.4f} ({} samples in {:.1f} s)",
                  epochs_done(), result_.accuracy * 100, result_.loss, line.samples, seconds));
  if (target_reached_)
    reporter_->record().append(TargetReached{.epoch = epochs_done(),
                                             .step = step_,
                                             .wall_seconds = line.wall_seconds,
                                             .train_seconds = train_seconds,
                                             .value = result_.accuracy});
  return best;
}

}  // namespace tutti
