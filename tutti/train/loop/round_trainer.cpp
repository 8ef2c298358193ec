#include "tutti/train/loop/round_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/train/network/nonfinite.h"

namespace tutti::train {
namespace {

/// Steps between two votes whether any rank was asked to stop.
constexpr int64_t kStopCheckSteps = 4;

/// Returns the same as first_nonfinite, or why there is no answer: the search keeps all results,
/// which a device may have no memory for.
std::string found_nonfinite(const NonfiniteSearch& search, const backend::Backend& backend) {
  try {
    return first_nonfinite(search, backend);
  } catch (const DeviceError& error) {
    return fmt::format("where that began was not found ({})", error.what());
  }
}

}  // namespace

RoundTrainer::RoundTrainer(Running& run) : run_(run) {
  const config::RunSection& section = run.config.run;
  if (!section.slow.empty() || section.slow_sigma > 0) slow_.emplace(section, run.comm.rank());
  for (const SlowEntry& entry : parse_slow(section))
    if (entry.rank >= run.comm.size())
      log::warn_once("run.slow names rank {}, which this job does not have", entry.rank);
  if (run.comm.size() > 1)
    stop_vote_ = run.comm.plan({.name = "was anyone asked to stop",
                                .kind = comm::Collective::allreduce,
                                .element = comm::Element::i32,
                                .op = comm::ReduceOp::max,
                                .count = vote_.size(),
                                .output = vote_.data(),
                                .algorithm = "recursive_doubling"});
}

void RoundTrainer::save(keep::SavedRun& saved) const {
  for (keep::NamedTensor& tensor : batches_->state())
    saved.own.push_back(keep::owned(std::move(tensor)));
}

void RoundTrainer::read_from_here() {
  writer_.emplace(sample_writer(run_.config, *run_.spec.data.train, run_.network().batch()));
  batches_ = make_batches();
}

bool RoundTrainer::train() {
  const trace::ScopedSpan span = run_.span("step");
  const int64_t begun = run_.step;
  const bool several = run_.rounds->takes_several_steps();
  run_.rounds->begin(run_.step, several ? next_meeting() : run_.step + 1);
  const bool asks = !several && (run_.step + 1) % kStopCheckSteps == 0;
  if (asks) ask_to_stop();
  const auto signal = [&] {
    return several && run_.spec.stop_requested ? run_.spec.stop_requested() : 0;
  };
  const double slowed_before = slowed_, taking_before = taking_;
  double data_wait = 0;
  while (const std::optional<RoundGradient> gradient = run_.rounds->next(signal()))
    data_wait += make(*gradient);
  require_finite_gradients();  // with stages: the last backward passes
  run_.step = run_.rounds->end(signal());
  if (!several) computed_ = run_.rounds->computed();
  StepTimes times = run_.rounds->times();
  times.compute += slowed_ - slowed_before;
  times.data_wait = data_wait;
  run_.epoch.virtual_waited += run_.rounds->take_virtual_wait();
  if (several) asked_by_ = std::max(asked_by_, run_.rounds->asked());  // including servers
  const auto answered = RunClock::Clock::now();
  const bool asked = several ? asked_by_ != 0 : asks && stop_asked();
  times.comm_exposed += RunClock::since(answered);  // waits for the last rank
  if (run_.training->runs_ahead())
    take_ends(asked || run_.pause_due(run_.step) ? plan::Until::all : plan::Until::over);
  times.compute += taking_ - taking_before;
  // Counts from the end of the previous round, so that epochs add up to the training time: includes
  // logging between steps, excludes evaluations and checkpoints.
  const double now = run_.clock.train();
  times.total = now - std::exchange(step_ended_, now);
  run_.interval.times += times;
  run_.epoch.times += times;
  run_.interval.steps += run_.step - begun;
  run_.interval.unknown = std::ssize(begun_);
  run_.epoch.steps += run_.step - begun;
  return asked;
}

double RoundTrainer::make(const RoundGradient& gradient) {
  if (run_.rounds->takes_several_steps()) computed_ = run_.rounds->computed();
  if (gradient.slowed) slowed_ += slow_down(gradient.number);
  double data_wait = 0;
  for (size_t i = 0; i < gradient.batches.size(); ++i)
    data_wait += run_batch(gradient.first + static_cast<int>(i), gradient.batches[i]);
  ++run_.interval.gradients;
  return data_wait;
}

double RoundTrainer::run_batch(int local, const MicroBatch& which) {
  const bool ahead = run_.training->runs_ahead();
  if (ahead) take_ends(plan::Until::room);
  const data::Batch& batch = next_batch();
  const double waited = batches_->last_wait_seconds();
  if (ahead) {
    begun_.push_back(local);
    run_.training->begin_run(which, batch.tensors);
    if (run_.spec.data.canvases) take_ends(plan::Until::all);  // the next batch depends on this one
    batches_->learn([this] { return run_.training->prediction(); });
    return waited;
  }
  const float loss = run_.training->run(which, batch.tensors);
  run_.note_norms();
  last_loss_ = loss;
  if (!std::isfinite(loss))
    report_nonfinite({.which = which,
                      .step = run_.training->info().step,
                      .loss = loss,
                      .tensors = batch.tensors});
  batches_->learn([this] { return run_.training->prediction(); });
  require_finite_gradients();
  run_.interval.loss[static_cast<size_t>(local)] += loss;
  return waited;
}

void RoundTrainer::take_ends(plan::Until until) {
  const auto began = RunClock::Clock::now();
  while (const std::optional<MicroBatchEnd> end = run_.training->next_end(until)) {
    last_loss_ = end->loss;
    if (!std::isfinite(end->loss)) report_nonfinite(*end);
    if (!end->bad_gradient.empty())
      report_bad_gradient(end->bad_gradient, end->step, end->which.local_replica);
    run_.interval.loss[static_cast<size_t>(begun_.front())] += end->loss;
    begun_.pop_front();
  }
  run_.note_norms();
  taking_ += RunClock::since(began);
}

void RoundTrainer::note_samples(int64_t step, int replica) {
  const int64_t per_epoch = run_.shape.steps_per_epoch();
  for (int batch = 0; batch < run_.shape.accumulate; ++batch)
    batches_->add({.epoch = step / per_epoch,
                   .step = step % per_epoch,
                   .replica = replica * run_.shape.accumulate + batch});
}

int64_t RoundTrainer::next_meeting() const {
  int64_t step = run_.step + 1;
  while (!run_.pause_due(step)) ++step;
  return step;
}

void RoundTrainer::require_finite_gradients() const {
  if (!run_.training->bad_gradient().empty())
    report_bad_gradient(run_.training->bad_gradient(), run_.step,
                        run_.training->last().local_replica);
}

void RoundTrainer::report_bad_gradient(const std::string& gradient, int64_t step,
                                       int local_replica) const {
  throw NumericError(fmt::format(
      "{} at step {}, replica {}{}; {}; lower optimizer.lr or look at the data", gradient, step + 1,
      run_.shape.replicas.replica(local_replica),
      run_.network().losses.empty() ? "" : fmt::format(", although the loss is {}", last_loss_),
      run_.what_is_left()));
}

const data::Batch& RoundTrainer::next_batch() {
  const trace::ScopedSpan span = run_.span("wait for data");
  return batches_->next();
}

double RoundTrainer::slow_down(int64_t draw) {
  const double delay = slow_ ? slow_->delay(draw) : 0;
  if (delay == 0 || computed_ == 0) return 0;
  const trace::ScopedSpan span = run_.span("slowed");
  const auto began = RunClock::Clock::now();
  const auto until = began + std::chrono::duration<double>(delay * computed_);
  // Acts like a slow processor: messages go on meanwhile.
  while (RunClock::Clock::now() < until) {
    run_.comm.progress();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return RunClock::since(began);
}

void RoundTrainer::report_nonfinite(const MicroBatchEnd& end) {
  run_.training->settle();  // the search reads the weights
  const std::string where =
      run_.shape.grid.stages() > 1
          ? fmt::format("found by stage {} of {}", run_.shape.grid.stage(),
                        run_.shape.grid.stages())
          : found_nonfinite(
                {.model = model_spec(run_.config, *run_.spec.data.train, run_.shape.batch.local),
                 .weights = &run_.training->weights(),
                 .local_replica = end.which.local_replica,
                 .parameters = end.which.parameters,
                 .batch = run_.network().batch(),
                 .tensors = end.tensors,
                 .layout = run_.network().training.layout,
                 .most_error = run_.config.plan.bf16_error},
                *run_.spec.backend);
  throw NumericError(fmt::format(
      "the loss is {} at step {}, replica {}: {}; {}; lower optimizer.lr or look at "
      "the data",
      std::isnan(end.loss) ? "NaN" : "infinite", end.step + 1,
      run_.shape.replicas.replica(end.which.local_replica), where, run_.what_is_left()));
}

void RoundTrainer::ask_to_stop() {
  vote_ = {run_.spec.stop_requested ? run_.spec.stop_requested() : 0,
           run_.writes_here && run_.writes_here()};
  if (stop_vote_) stop_vote_->start();
}

bool RoundTrainer::stop_asked() {
  if (stop_vote_) stop_vote_->wait();
  run_.written_everywhere = vote_[1] == 0;
  asked_by_ = std::max(asked_by_, vote_[0]);
  return asked_by_ != 0;
}

}  // namespace tutti::train
