#include "tutti/train/rounds/every_step.h"

#include "tutti/base/log.h"

namespace tutti::train {

void EveryStep::start_clock(const keep::Checkpoint* resumed, int64_t step) {
  if (clock_)
    clock_->start(resumed, step);
  else if (resumed && resumed->info.metrics.contains(kVirtualSeconds))
    log::warn_once("the run until step {} was a replay, and goes on without a virtual time", step);
}

void EveryStep::start(const keep::Checkpoint* resumed, int64_t step) {
  start_clock(resumed, step);
  spec_.step.start();
}

void EveryStep::begin(int64_t first, int64_t) {
  step_ = first;
  made_ = false;
  spec_.step.begin(first, static_cast<float>(spec_.rate(first)));
}

RoundGradient EveryStep::gradient_of(int first, int count) const {
  RoundGradient gradient{.number = step_, .first = first, .batches = {}};
  for (int i = 0; i < count; ++i) gradient.batches.push_back(spec_.step.micro_batch(first + i));
  return gradient;
}

std::optional<RoundGradient> EveryStep::next(int) {
  if (!made_) {
    made_ = true;
    return gradient_of(0, spec_.step.summed().local_count());
  }
  spec_.step.update();
  return std::nullopt;
}

int64_t EveryStep::end(int) {
  times_ = spec_.step.times();
  if (clock_) clock_->follow(step_);
  return step_ + 1;
}

void EveryStep::report(int64_t step, trace::RunRecord* record) {
  if (clock_) clock_->report(step, record);
}

std::optional<double> EveryStep::virtual_seconds() const {
  return clock_ ? std::optional(clock_->seconds()) : std::nullopt;
}

void EveryStep::save(keep::SavedRun& saved) {
  spec_.step.save_state(saved);
  save_clock(saved);
}

void EveryStep::save_clock(keep::SavedRun& saved) const {
  if (!clock_) return;
  saved.shared.push_back(clock_->state());
  saved.numbers[kVirtualSeconds] = clock_->seconds();
}

}  // namespace tutti::train
