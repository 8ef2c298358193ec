#pragma once
// The learning rate as a pure function of the step: a checkpoint stores nothing, and every rank has
// the same rate. Any dependence on evaluations is a separate factor (plateau.h); the schedule
// plateau is constant here. A step is one update of the weights, counted from 0.

#include <cstdint>

#include "tutti/config/schedule_section.h"

namespace tutti::train {

/// The run that a schedule spans.
struct ScheduleSpan {
  double rate = 0.1;        ///< optimizer.lr: multiplied by every factor; one_cycle's peak; for
                            ///< schedule.base_batch
  int64_t total_steps = 1;  ///< length of the schedule; the last step is total_steps - 1. Later
                            ///< steps keep the last rate
  int64_t steps_per_epoch = 1;
  int64_t global_batch = 128;
};

// Linear warm-up precedes any kind: it passes through warmup_factor just before step 0 and reaches
// the schedule's own rate at step warmup_steps (Goyal et al. 2017, section 2.2). By epochs, an
// epoch has the rate of its first step, on a line that begins with warmup_factor at step 0:
// factor(e) = warmup_factor + (1 - warmup_factor) * e * steps_per_epoch / warmup_steps, as in
// CosmoFlow's reference. Milestones count from step 0; cosine and one_cycle extend from the end of
// the warm-up to the last step.
//   inverse_sqrt (Vaswani et al. 2017, section 5.3): sqrt((warmup_steps + 1) / (step + 1)) from the
//     end of the warm-up on; total_steps has no effect
//   polynomial: final_factor + (1 - final_factor) * (1 - progress)^power
//   one_cycle: as PyTorch's OneCycleLR with pct_start = peak_at, div_factor = 1 / initial_factor and
//     final_div_factor = initial_factor / final_factor

/// Immutable; safe from any thread.
class LearningRateSchedule {
 public:
  /// Throws ConfigError for values that do not form a schedule.
  LearningRateSchedule(config::ScheduleSection section, const ScheduleSpan& span);
  double rate(int64_t step) const;

 private:
  double factor(int64_t step) const;  ///< factor of scaled_rate_, without the warm-up

  config::ScheduleSection s_;  ///< its warm-up and milestones in steps
  ScheduleSpan span_;
  double scaled_rate_ = 0;
};

}  // namespace tutti::train
