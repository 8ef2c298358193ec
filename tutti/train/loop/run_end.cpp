// Ends a run: writes the last lines of its record and its log.

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/device/device.h"
#include "tutti/train/loop/run_report.h"
#include "tutti/train/settings/goal.h"

namespace tutti::train {

void RunReport::end(trace::RunStatus status, const std::string& reason,
                    const std::function<void()>& test) {
  run_.result.status = status;
  run_.result.steps = run_.step;
  run_.result.metrics = run_.goal.metrics;
  run_.display.clear();
  report_stages();
  report_compression();
  if (run_.rounds->takes_several_steps() && run_.step > run_.first_step &&
      run_.step % run_.shape.steps_per_epoch() != 0)
    run_.rounds->report(
        run_.step, run_.first() ? &run_.reporter->record() : nullptr);  // for a part of an epoch
  if (run_.spec.data.tested_at_end() && status != trace::RunStatus::requeue &&
      !(run_.past.earlier.tested && run_.step == run_.first_step))
    test();
  report_data();
  if (run_.step > run_.first_step) report_machine(true);
  if (run_.spans)
    run_.spans->write((std::filesystem::path(run_.spec.place.directory) /
                       fmt::format("trace.rank{}.json", run_.comm.rank()))
                          .string(),
                      run_.comm.rank());
  if (status == trace::RunStatus::requeue && run_.spec.run_is_saved) run_.spec.run_is_saved();
  if (!run_.first()) return;
  run_.reporter->record().append(stop_event(status, reason));
  // Only a batch job can be requeued.
  const bool stopped = status == trace::RunStatus::requeue && !run_.spec.in_batch_job;
  log::info("{}: {} ({:.1f} s training, {:.1f} s in all{})",
            stopped ? "stopped" : trace::name(status), reason, run_.clock.train(),
            startup_seconds_ + run_.clock.wall(),
            run_.first_step > 0 ? " without the starts before this one" : "");
  log_next(run_.spec.place, run_.left, run_.spec.next,
           status == trace::RunStatus::requeue ? "" : beyond_this_end());
}

std::string RunReport::beyond_this_end() const {
  if (run_.goal.reached)
    return fmt::format(
        " --target X   (X {} {:.4f}, or 0 for none)",
        run_.goal.goal.metric->higher_is_better() ? "above" : "below",
        run_.past.earlier.reached &&
                !run_.goal.goal.better(run_.goal.quality(), run_.past.earlier.reached->best)
            ? run_.past.earlier.reached->best
            : run_.goal.quality());
  if (run_.stopped_early() && run_.step < run_.shape.total_steps)
    return fmt::format(" --set run.patience=N   (N above {}, or 0 for none)",
                       run_.goal.patience.waited());
  return run_limit(run_.config.run, run_.shape.steps_per_epoch(), run_.step).flags;
}

trace::RunStop RunReport::stop_event(trace::RunStatus status, const std::string& reason) const {
  const auto now = RunClock::Clock::now();
  std::optional<int64_t> peak, joules;
  if (device::Device* const device = run_.spec.backend->device()) {
    peak = static_cast<int64_t>(device->counts().most_bytes);
    // A device that failed tells nothing more.
    const double used = status == trace::RunStatus::failed ? -1 : device->joules();
    if (used >= 0) joules = static_cast<int64_t>(used);
  }
  return {.status = status,
          .reason = reason,
          .epochs = run_.epochs_done(),
          .steps = run_.step,
          .samples = run_.step * run_.shape.batch.global,
          .wall_seconds = run_.clock.wall(now),
          .train_seconds = run_.clock.train(now),
          .eval_seconds = run_.evaluation_seconds,
          .checkpoint_seconds = run_.checkpoint_seconds,
          .device_peak_bytes = peak,
          .device_joules = joules};
}

void RunReport::record_failure(const std::exception& error) {
  run_.display.clear();
  const bool alone = !run_.together && dynamic_cast<const CommError*>(&error) == nullptr;
  if (!run_.first() && !alone) return;
  append_failure(run_.spec.place, run_.comm, error, stop_event(trace::RunStatus::failed, {}));
}

}  // namespace tutti::train
