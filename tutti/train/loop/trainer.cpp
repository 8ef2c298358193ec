#include "tutti/train/loop/trainer.h"

#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/train/loop/trainer_run.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/server_settings.h"

namespace tutti::train {

RunResult TrainerRun::run() {
  compare_with_before();
  build();
  report_.open_record();
  try {
    run_.comm.barrier();
    run_.clock.start(run_.past.earlier.wall_seconds, run_.past.earlier.train_seconds);
    trainer_->start();
    run_.past.checkpoint.reset();
    run_.first_step = run_.step;
    report_.start();
    loop();
    run_.rounds->dismiss(run_.result.status);
  } catch (const std::exception& error) {
    report_.record_failure(error);
    if (checkpoints_)
      checkpoints_->leave(run_.together && dynamic_cast<const CommError*>(&error) == nullptr);
    // All workers end with this error: it is sent to the serving ranks, which have none of their
    // own to report. An error between ranks reaches them as it does the others.
    if (run_.rounds && run_.together && dynamic_cast<const CommError*>(&error) == nullptr) {
      try {
        run_.rounds->dismiss(trace::RunStatus::failed);
      } catch (const std::exception& unreported) {
        log::warn("ranks that serve were not told of it: {}", unreported.what());
      }
    }
    throw;
  }
  return run_.result;
}

void TrainerRun::loop() {
  const int64_t per_epoch = run_.shape.steps_per_epoch();
  if (run_.goal.reached)
    return stop(
        trace::RunStatus::done,
        fmt::format(
            "nothing to do: target reached before step {}{}", run_.step,
            run_.past.earlier.reached
                ? fmt::format(", at epoch {:.2f} with {} {:.4f}", run_.past.earlier.reached->epoch,
                              run_.goal.goal.metric->name(), run_.past.earlier.reached->value)
                : ""));
  if (run_.step >= run_.shape.total_steps)
    log::warn_once("nothing to do: {} steps are done, and {} the run there", run_.step,
                   run_limit(run_.config.run, per_epoch, run_.step).text);
  else if (run_.stopped_early())
    log::warn_once("nothing to do: {}, at step {}", stopped_early_words(), run_.step);
  while (!run_.nothing_to_do()) {
    bool asked = trainer_->train();
    checkpoints_->go_on();
    report_.show_step();
    bool last = run_.step == run_.shape.total_steps;
    if (run_.log_due(run_.step) || last) report_.log_steps();
    if (run_.step % per_epoch == 0) end_epoch();
    bool best = false;
    if (run_.evaluation_due(run_.step) || last) {
      best = evaluation_->evaluate();
      trainer_->ask_to_stop();
      asked = trainer_->stop_asked() || asked;  // the evaluation may have taken long
      last = last || run_.stopped_early();
    }
    const bool ends = last || run_.goal.reached || asked;
    if (run_.checkpoint_due(run_.step) || best || ends) {
      run_.clock.stand_still();
      checkpoints_->write(best, ends);
    }
    if (run_.goal.reached) return stop(trace::RunStatus::done, "target reached");
    if (asked && !last)
      return stop(trace::RunStatus::requeue,
                  fmt::format("stopped by signal {} with a checkpoint at step {}",
                              trainer_->asked_by(), run_.step));
  }
  std::string words =
      run_.step == run_.first_step ? fmt::format("nothing to do at step {}", run_.step) : "";
  if (run_.stopped_early()) words += (words.empty() ? "" : "; ") + stopped_early_words();
  if (run_.config.run.target > 0 && !run_.goal.reached) {
    const std::string known =
        std::isfinite(run_.goal.quality())
            ? fmt::format("{} {:.4f} after {:.2f} epochs", run_.goal.goal.metric->name(),
                          run_.goal.quality(), run_.epochs_done())
            : fmt::format("{} was not measured in these {:.2f} epochs",
                          run_.goal.goal.metric->name(), run_.epochs_done());
    return stop(trace::RunStatus::target_missed,
                fmt::format("{}{}{}, the target {} {}", words, words.empty() ? "" : "; ", known,
                            run_.step == run_.first_step ? "is" : "was", run_.config.run.target));
  }
  stop(trace::RunStatus::done, words.empty() ? fmt::format("{} steps", run_.step) : words);
}

void TrainerRun::end_epoch() {
  trainer_->report_waiting();
  report_.end_epoch();
}

void TrainerRun::stop(trace::RunStatus status, const std::string& reason) {
  report_.end(status, reason, [this] { evaluation_->test(); });
}

std::string TrainerRun::stopped_early_words() const {
  return fmt::format("stopped early: no better {} for {} evaluation{}",
                     run_.goal.goal.metric->name(), run_.goal.patience.waited(),
                     run_.goal.patience.waited() == 1 ? "" : "s");
}

RunResult train(const TrainerSpec& spec) {
  if (server_ranks(spec.config) == 0) return TrainerRun(spec).run();
  comm::Communicator& job = *spec.communicator;
  const bool serves = job.rank() >= worker_ranks(spec.config, job.size());
  const auto part = job.split(serves ? 1 : 0, 0, serves ? "servers" : "workers");
  TrainerSpec own = spec;
  own.communicator = part.get();
  own.job = &job;
  return serves ? serve_workers(own) : TrainerRun(own).run();
}

}  // namespace tutti::train
