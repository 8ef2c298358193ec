#pragma once
// EveryStep: every step sums the gradients of all replicas, and all take the same step.

#include "tutti/train/rounds/replay_clock.h"
#include "tutti/train/rounds/rounds.h"

namespace tutti::train {

class EveryStep : public Rounds {
 public:
  explicit EveryStep(const RoundsSpec& spec) : spec_(spec), clock_(make_replay_clock(spec)) {}

  void start(const keep::Checkpoint* resumed, int64_t step) override;
  void begin(int64_t first, int64_t end) override;
  std::optional<RoundGradient> next(int signal) override;
  int64_t end(int signal) override;
  StepTimes times() const override { return times_; }
  void report(int64_t step, trace::RunRecord* record) override;
  std::optional<double> virtual_seconds() const override;
  double take_virtual_wait() override { return clock_ ? clock_->take_waited() : 0; }
  void save(keep::SavedRun& saved) override;

 protected:
  /// Returns this rank's micro-batches [first, first + count), the same in every step.
  RoundGradient gradient_of(int first, int count) const;
  void start_clock(const keep::Checkpoint* resumed, int64_t step);
  void save_clock(keep::SavedRun& saved) const;

  const RoundsSpec spec_;
  const std::unique_ptr<ReplayClock> clock_;  // for a replay
  int64_t step_ = 0;
  bool made_ = false;  // the gradient of this step was made
  StepTimes times_;
};

}  // namespace tutti::train
