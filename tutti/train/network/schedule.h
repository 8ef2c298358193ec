#pragma once
// The learning rate as a pure function of the step: a checkpoint stores nothing, and every rank has
// the same rate. Any dependence on evaluations is a separate factor (plateau.h); kind plateau is
// constant here. A step is one update of the weights, counted from 0.

#include <cstdint>
#include <vector>

namespace tutti {

struct LearningRateSettings {
  enum class Kind { constant, steps, cosine, one_cycle, polynomial, plateau, inverse_sqrt };
  enum class Annealing { linear, cosine };    ///< form of one_cycle's two halves
  enum class Scaling { none, linear, sqrt };  ///< dependence of the rate on the global batch

  Kind kind = Kind::constant;
  double rate = 0.1;        ///< multiplied by every factor below; one_cycle's peak; for base_batch
  int64_t total_steps = 1;  ///< length of the schedule; the last step is total_steps - 1. Later
                            ///< steps keep the last rate
  int64_t steps_per_epoch = 1;

  // Linear warm-up precedes any kind: it passes through warmup_factor just before step 0 and
  // reaches the schedule's own rate at step warmup_steps (Goyal et al. 2017, section 2.2). By
  // epochs, an epoch has the rate of its first step, on a line that begins with warmup_factor at
  // step 0: factor(e) = warmup_factor + (1 - warmup_factor) * e * steps_per_epoch / warmup_steps,
  // as in CosmoFlow's reference. Milestones count from step 0; cosine and one_cycle extend from the
  // end of the warm-up to the last step.
  int64_t warmup_steps = 0;
  double warmup_factor = 0;
  bool warmup_by_epochs = false;

  std::vector<int64_t>
      milestones{};  ///< steps, rising; each one multiplies the rate by gamma once more
  bool milestones_in_epochs = true;
  double gamma = 0.1;
  std::vector<double> factors{};  ///< the factor from each milestone on, instead of powers of gamma

  // inverse_sqrt (Vaswani et al. 2017, section 5.3): sqrt((warmup_steps + 1) / (step + 1)) from the
  // end of the warm-up on; total_steps has no effect.
  double power = 1;  ///< polynomial: final_factor + (1 - final_factor) * (1 - progress)^power

  // one_cycle, as PyTorch's OneCycleLR with pct_start = peak_at, div_factor = 1 / initial_factor
  // and final_div_factor = initial_factor / final_factor.
  Annealing annealing = Annealing::cosine;
  double peak_at = 0.3;          ///< fraction of the schedule at which the peak is reached
  double initial_factor = 0.04;  ///< first rate / peak
  double final_factor = 0;       ///< last rate / peak; for cosine and polynomial too

  Scaling scaling =
      Scaling::none;  ///< multiplies by global_batch / base_batch, or by its square root
  int64_t base_batch = 128, global_batch = 128;
};

/// Immutable; safe from any thread.
class LearningRateSchedule {
 public:
  /// Throws ConfigError for settings that do not form a schedule.
  explicit LearningRateSchedule(LearningRateSettings settings);
  double rate(int64_t step) const;
  const LearningRateSettings& settings() const { return s_; }

 private:
  double factor(int64_t step) const;  ///< factor of scaled_rate_, without the warm-up

  LearningRateSettings s_;
  double scaled_rate_ = 0;
};

}  // namespace tutti
