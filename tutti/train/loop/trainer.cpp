#include "tutti/train/loop/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/train/loop/serve_workers.h"
#include "tutti/train/loop/trainer_run.h"
#include "tutti/train/network/nonfinite.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/settings.h"

namespace tutti {
namespace {

/// Steps between two looks at whether any rank was asked to stop.
constexpr int64_t kStopCheckSteps = 4;

}  // namespace

RunResult TrainerRun::run() {
  compare_with_before();
  build();
  open_record();
  try {
    comm_.barrier();
    watch_.emplace();
    clock_.start(earlier_.wall_seconds, earlier_.train_seconds);
    step_ended_ = clock_.train();
    resumed_.reset();
    run_started_ = RunClock::Clock::now();
    startup_seconds_ = unix_now() - spec_.process_started;
    log::info("{:.2f} s from start to the first step", startup_seconds_);
    loop();
    rounds_->dismiss(result_.status);
  } catch (const std::exception& error) {
    record_failure(error);
    // All workers end with it: ranks that serve are told, and have no error of their own to report.
    // Of an error between ranks they hear as the others do.
    if (rounds_ && together_ && dynamic_cast<const CommError*>(&error) == nullptr) {
      try {
        rounds_->dismiss(RunStatus::failed);
      } catch (const std::exception& untold) {
        log::warn("ranks that serve were not told of it: {}", untold.what());
      }
    }
    throw;
  }
  return result_;
}

void TrainerRun::loop() {
  const int64_t per_epoch = sampler_.steps_per_epoch();
  epoch_partial_ = step_ % per_epoch != 0;
  first_step_ = step_;
  if (target_reached_)
    return stop(
        RunStatus::done,
        fmt::format("nothing to do: target reached before step {}{}", step_,
                    earlier_.reached
                        ? fmt::format(", at epoch {:.2f} with {} {:.4f}", earlier_.reached->epoch,
                                      goal_.metric->name(), earlier_.reached->value)
                        : ""));
  if (step_ >= total_steps_)
    log::warn_alike("nothing to do: {} steps are done, and {} the run there", step_,
                    run_limit(config_.run, per_epoch, step_).text);
  else if (stopped_early())
    log::warn_alike("nothing to do: {}, at step {}", stopped_early_words(), step_);
  while (!nothing_to_do()) {
    bool asked = train_round();
    bool last = step_ == total_steps_;
    if (log_due(step_) || last) log_steps();
    if (step_ % per_epoch == 0) end_epoch();
    bool best = false;
    if (evaluation_due() || last) {
      best = evaluate();
      ask_to_stop();
      asked = stop_asked() || asked;  // it may have taken long
      last = last || stopped_early();
    }
    const bool ends = last || target_reached_ || asked;
    if (checkpoint_due(step_) || best || ends) {
      clock_.stand_still();
      write_checkpoint_now(best, ends);
    }
    if (target_reached_) return stop(RunStatus::done, "target reached");
    if (asked && !last)
      return stop(
          RunStatus::requeue,
          fmt::format("stopped by signal {} with a checkpoint at step {}", asked_by_, step_));
  }
  std::string words = step_ == first_step_ ? fmt::format("nothing to do at step {}", step_) : "";
  if (stopped_early()) words += (words.empty() ? "" : "; ") + stopped_early_words();
  if (config_.run.target > 0 && !target_reached_) {
    const std::string known = std::isfinite(quality())
                                  ? fmt::format("{} {:.4f} after {:.2f} epochs",
                                                goal_.metric->name(), quality(), epochs_done())
                                  : fmt::format("{} was not measured in these {:.2f} epochs",
                                                goal_.metric->name(), epochs_done());
    return stop(RunStatus::target_missed,
                fmt::format("{}{}{}, the target {} {}", words, words.empty() ? "" : "; ", known,
                            step_ == first_step_ ? "is" : "was", config_.run.target));
  }
  stop(RunStatus::done, words.empty() ? fmt::format("{} steps", step_) : words);
}

bool TrainerRun::train_round() {
  const ScopedSpan span(spans(), span_name("step"), span_lane());
  const int64_t begun = step_;
  const bool several = rounds_->takes_several_steps();
  rounds_->begin(step_, several ? next_meeting() : step_ + 1);
  const bool asks = !several && (step_ + 1) % kStopCheckSteps == 0;
  if (asks) ask_to_stop();
  const auto signal = [&] { return several && spec_.stop_requested ? spec_.stop_requested() : 0; };
  const double slowed_before = slowed_;
  double data_wait = 0;
  while (const std::optional<RoundGradient> gradient = rounds_->next(signal()))
    data_wait += make(*gradient);
  require_finite_gradients();  // of those that went back last, where replicas have stages
  step_ = rounds_->end(signal());
  if (!several) computed_ = rounds_->computed();
  StepTimes times = rounds_->times();
  times.compute += slowed_ - slowed_before;
  times.data_wait = data_wait;
  virtual_waited_ += rounds_->take_virtual_wait();
  if (several) asked_by_ = std::max(asked_by_, rounds_->asked());  // servers among them
  const auto answered = RunClock::Clock::now();
  const bool asked = several ? asked_by_ != 0 : asks && stop_asked();
  times.comm_exposed += RunClock::since(answered);  // it waits for the rank that is late
  // From the end of the round before, so that epochs add up to the training time: with what is
  // logged between steps, without evaluations and checkpoints.
  const double now = clock_.train();
  times.total = now - std::exchange(step_ended_, now);
  interval_.times += times;
  epoch_times_ += times;
  interval_.steps += step_ - begun;
  epoch_steps_ += step_ - begun;
  if (spec_.terminal && first() && !several) {
    // Of a replica of several ranks this one may have no loss, or a share.
    display_.step(progress(grid_.peers() == 1 ? interval_.mean_loss() : logged_loss_));
  }
  return asked;
}

double TrainerRun::make(const RoundGradient& gradient) {
  if (rounds_->takes_several_steps()) computed_ = rounds_->computed();
  if (gradient.slowed) slowed_ += slow_down(gradient.number);
  double data_wait = 0;
  for (size_t i = 0; i < gradient.batches.size(); ++i)
    data_wait += run_batch(gradient.first + static_cast<int>(i), gradient.batches[i]);
  ++interval_.gradients;
  return data_wait;
}

double TrainerRun::run_batch(int local, const MicroBatch& which) {
  const data::Batch& batch = next_batch();
  const double waited = batches_->last_wait_seconds();
  const float loss = training_->run(which, batch.tensors);
  note_norms();
  last_loss_ = loss;
  if (!std::isfinite(loss)) report_nonfinite(batch, loss);
  batches_->learn([this] { return training_->prediction(); });
  require_finite_gradients();
  interval_.loss[static_cast<size_t>(local)] += loss;
  return waited;
}

void TrainerRun::note_samples(int64_t step, int replica) {
  const int64_t per_epoch = sampler_.steps_per_epoch();
  for (int batch = 0; batch < accumulate_; ++batch)
    batches_->add({.epoch = step / per_epoch,
                   .step = step % per_epoch,
                   .replica = replica * accumulate_ + batch});
}

int64_t TrainerRun::next_meeting() const {
  int64_t step = step_ + 1;
  while (step < total_steps_ && !log_due(step) && !evaluation_due(step) && !checkpoint_due(step))
    ++step;
  return step;
}

void TrainerRun::require_finite_gradients() const {
  if (training_->bad_gradient().empty()) return;
  throw NumericError(fmt::format(
      "{} at step {}, replica {}{}; {}; lower optimizer.lr or look at the data",
      training_->bad_gradient(), step_ + 1, replicas_.replica(training_->last().local_replica),
      network().losses.empty() ? "" : fmt::format(", although the loss is {}", last_loss_),
      what_is_left()));
}

const data::Batch& TrainerRun::next_batch() {
  const ScopedSpan span(spans(), span_name("wait for data"), span_lane());
  return batches_->next();
}

double TrainerRun::slow_down(int64_t draw) {
  const double delay = slow_ ? slow_->delay(draw) : 0;
  if (delay == 0 || computed_ == 0) return 0;
  const ScopedSpan span(spans(), span_name("slowed"), span_lane());
  const auto began = RunClock::Clock::now();
  const auto until = began + std::chrono::duration<double>(delay * computed_);
  // As a slow processor would: messages go on meanwhile.
  while (RunClock::Clock::now() < until) {
    comm_.progress();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return RunClock::since(began);
}

void TrainerRun::note_norms() {
  const GradientNorms norms = training_->take_gradient_norms();
  if (!std::isfinite(norms.sum)) {
    together_ = !rounds_->has_model();  // else only this rank sees it
    throw NumericError(
        fmt::format("the norm of the gradient is {} at step {}, although each replica's gradient "
                    "is finite: their sum or its squares are too large; {}; lower optimizer.lr or "
                    "look at the data",
                    std::isnan(norms.sum) ? "NaN" : "infinite", step_, what_is_left()));
  }
  interval_.norms += norms;
}

void TrainerRun::report_nonfinite(const data::Batch& batch, float loss) {
  const std::string where =
      grid_.stages() > 1
          ? fmt::format("found by stage {} of {}", grid_.stage(), grid_.stages())
          : first_nonfinite({.model = model_spec(config_, *spec_.data.train, batch_.local),
                             .weights = &training_->weights(),
                             .local_replica = training_->last().local_replica,
                             .parameters = training_->last().parameters,
                             .batch = network().batch(),
                             .tensors = batch.tensors,
                             .layout = network().training.layout,
                             .most_error = config_.plan.bf16_error},
                            *spec_.backend);
  throw NumericError(
      fmt::format("the loss is {} at step {}, replica {}: {}; {}; lower optimizer.lr or look at "
                  "the data",
                  std::isnan(loss) ? "NaN" : "infinite", training_->info().step + 1,
                  replicas_.replica(training_->last().local_replica), where, what_is_left()));
}

void TrainerRun::ask_to_stop() {
  stop_signal_ = spec_.stop_requested ? spec_.stop_requested() : 0;
  if (stop_vote_) stop_vote_->start();
}

bool TrainerRun::stop_asked() {
  if (stop_vote_) stop_vote_->wait();
  asked_by_ = std::max(asked_by_, stop_signal_);
  return asked_by_ != 0;
}

bool TrainerRun::every_epochs(double epochs, int64_t step) const {
  if (epochs <= 0) return false;
  const auto steps =
      std::max<int64_t>(1, std::llround(epochs * static_cast<double>(sampler_.steps_per_epoch())));
  return step % steps == 0;
}

bool TrainerRun::evaluation_due(int64_t step) const {
  return every_epochs(config_.run.eval_every, step);
}

bool TrainerRun::log_due(int64_t step) const {
  return step % config_.run.log_every == 0 || step % sampler_.steps_per_epoch() == 0;
}

bool TrainerRun::checkpoint_due(int64_t step) const {
  return (config_.checkpoint.every_steps > 0 && step % config_.checkpoint.every_steps == 0) ||
         every_epochs(static_cast<double>(config_.checkpoint.every_epochs), step);
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

}  // namespace tutti
