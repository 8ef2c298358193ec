// How a run ends: what its record and its log say last.

#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/train/loop/trainer_run.h"
#include "tutti/train/settings/settings.h"

namespace tutti {

void TrainerRun::stop(RunStatus status, const std::string& reason) {
  result_.status = status;
  result_.steps = step_;
  display_.clear();
  report_stages(epoch_steps_);
  report_compression();
  if (rounds_->takes_several_steps() && step_ > first_step_ &&
      step_ % sampler_.steps_per_epoch() != 0)
    rounds_->report(step_, first() ? &reporter_->record() : nullptr);  // of the part of an epoch
  if (spec_.data.tested_at_end() && status != RunStatus::requeue &&
      !(earlier_.tested && step_ == first_step_))
    test();
  report_data();
  if (step_ > first_step_) report_machine(true);
  if (spans_)
    spans_->write(
        (std::filesystem::path(place_.directory) / fmt::format("trace.rank{}.json", comm_.rank()))
            .string(),
        comm_.rank());
  if (status == RunStatus::requeue && spec_.run_is_saved) spec_.run_is_saved();
  if (!first()) return;
  reporter_->record().append(stop_event(status, reason));
  // Only a batch job is queued.
  const bool stopped = status == RunStatus::requeue && !spec_.in_batch_job;
  log::info("{}: {} ({:.1f} s training, {:.1f} s in all{})", stopped ? "stopped" : name(status),
            reason, clock_.train(), startup_seconds_ + clock_.wall(),
            first_step_ > 0 ? " without the starts before this one" : "");
  log_next(place_, left_, spec_.next, status == RunStatus::requeue ? "" : beyond_this_end());
}

std::string TrainerRun::beyond_this_end() const {
  if (target_reached_)
    return fmt::format(" --target X   (X {} {:.4f}, or 0 for none)",
                       goal_.metric->higher_is_better() ? "above" : "below",
                       earlier_.reached && !goal_.better(quality(), earlier_.reached->best)
                           ? earlier_.reached->best
                           : quality());
  if (stopped_early() && step_ < total_steps_)
    return fmt::format(" --set run.patience=N   (N above {}, or 0 for none)", patience_.waited());
  return run_limit(config_.run, sampler_.steps_per_epoch(), step_).flags;
}

RunStop TrainerRun::stop_event(RunStatus status, const std::string& reason) const {
  const auto now = RunClock::Clock::now();
  return {.status = status,
          .reason = reason,
          .error = {},
          .epochs = epochs_done(),
          .steps = step_,
          .samples = step_ * batch_.global,
          .wall_seconds = clock_.wall(now),
          .train_seconds = clock_.train(now),
          .eval_seconds = evaluation_seconds_,
          .checkpoint_seconds = checkpoint_seconds_};
}

void TrainerRun::record_failure(const std::exception& error) {
  display_.clear();
  const bool alone = !together_ && dynamic_cast<const CommError*>(&error) == nullptr;
  if (!first() && !alone) return;
  append_failure(place_, comm_, error, stop_event(RunStatus::failed, {}));
}

}  // namespace tutti
