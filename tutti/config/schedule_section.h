#pragma once
// The keys of [schedule]: values, and the rows that describe them (config_table.h).

#include <cstdint>
#include <vector>

#include "tutti/config/config_words.h"

namespace tutti::config {

struct ScheduleSection {
  ScheduleKind name = ScheduleKind::constant;
  double warmup_epochs = 0;
  int64_t warmup_steps = 0;
  double warmup_factor = 0;
  WarmupRise warmup_rise = WarmupRise::steps;
  std::vector<int64_t> milestones{};
  MilestoneUnit milestone_unit = MilestoneUnit::epochs;
  double gamma = 0.1;
  std::vector<double> factors{};  ///< one a milestone, instead of gamma
  int64_t patience = 5;           ///< plateau: evaluations
  double power = 1;               ///< polynomial
  double hold = 0;                ///< cosine, polynomial: fraction of the run
  Annealing annealing = Annealing::cosine;
  double peak_at = 0.3;  ///< one_cycle: fraction of the run at which optimizer.lr is reached
  double initial_factor = 0.04;  ///< one_cycle: first rate / optimizer.lr
  double final_factor = 0;       ///< last rate / optimizer.lr
  BatchScaling scale_with_batch = BatchScaling::none;
  int64_t base_batch = 128;

  template <class Keys>
  static void keys(Keys& t) {
    using S = ScheduleSection;

    t.key(
        &S::name, "name",
        "Shape: constant; steps, times gamma at each milestone, or as schedule.factors say; "
        "cosine; one_cycle, up to optimizer.lr and down again; polynomial, down as (1 - progress) "
        "^ power; plateau, times gamma after each schedule.patience evaluations without a better "
        "metric; inverse_sqrt, as 1 / sqrt(step) from the end of the warm-up on");
    t.key(&S::warmup_epochs, "warmup_epochs",
          "Linear warm-up, in epochs; give this or schedule.warmup_steps")
        .at_least(0);
    t.key(&S::warmup_steps, "warmup_steps", "Linear warm-up, in steps").at_least(0);
    t.key(&S::warmup_factor, "warmup_factor", "Rate at the start of the warm-up / optimizer.lr")
        .between(0, 1)
        .only_with("schedule.warmup_epochs")
        .only_with("schedule.warmup_steps");
    t.key(&S::warmup_rise, "warmup_rise",
          "When the rate rises: at each step, from below warmup_factor at the first; or at each "
          "epoch, from warmup_factor in the first, as CosmoFlow's reference does")
        .only_with("schedule.warmup_epochs")
        .only_with("schedule.warmup_steps");
    t.key(&S::milestones, "milestones", "When the rate drops")
        .at_least(1)
        .only_with("schedule.name", {"steps"});
    t.key(&S::milestone_unit, "milestone_unit", "What schedule.milestones counts")
        .only_with("schedule.name", {"steps"});
    t.key(&S::gamma, "gamma", "Factor at each milestone or fall")
        .between(0, 1)
        .only_with("schedule.name", {"steps"}, {"schedule.factors"})
        .only_with("schedule.name", {"plateau"});
    t.key(&S::factors, "factors",
          "Rate from each milestone on / optimizer.lr, one a milestone, instead of gamma")
        .at_least(0)
        .only_with("schedule.name", {"steps"});
    t.key(&S::patience, "patience",
          "Evaluations without a better metric after which the rate falls")
        .at_least(1)
        .only_with("schedule.name", {"plateau"});
    t.key(&S::power, "power", "Exponent of the way down; 1: a straight line")
        .at_least(0)
        .only_with("schedule.name", {"polynomial"});
    t.key(
         &S::hold, "hold",
         "Fraction of the run, after the warm-up, in which the rate stays the highest before it "
         "falls; 0.8 with a straight line down is the trapezoid of warm-up, stable phase and decay")
        .between(0, 1)
        .only_with("schedule.name", {"cosine", "polynomial"});
    t.key(&S::annealing, "annealing", "Form of the rise and the fall")
        .only_with("schedule.name", {"one_cycle"});
    t.key(&S::peak_at, "peak_at", "Fraction of the run at which optimizer.lr is reached")
        .between(0, 1)
        .only_with("schedule.name", {"one_cycle"});
    t.key(&S::initial_factor, "initial_factor", "First rate / optimizer.lr")
        .between(0, 1)
        .only_with("schedule.name", {"one_cycle"});
    t.key(&S::final_factor, "final_factor", "Last rate / optimizer.lr, or the lowest of plateau")
        .between(0, 1)
        .only_with("schedule.name", {"cosine", "one_cycle", "polynomial", "plateau"});
    t.key(&S::scale_with_batch, "scale_with_batch",
          "Multiply the rate by (global batch / base_batch), or by its square root");
    t.key(&S::base_batch, "base_batch", "Batch for which optimizer.lr is stated")
        .at_least(1)
        .only_with("schedule.scale_with_batch");
  }
};

}  // namespace tutti::config
