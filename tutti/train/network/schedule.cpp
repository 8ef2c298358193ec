#include "tutti/train/network/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

/// Interpolates from `first` at progress 0 to `last` at progress 1.
double anneal(config::Annealing form, double first, double last, double progress) {
  if (form == config::Annealing::linear) return first + (last - first) * progress;
  return last + (first - last) / 2 * (1 + std::cos(std::numbers::pi * progress));
}

/// The rise ends at step peak_at * steps - 1, which need not be whole; the fall ends at the last
/// step.
double one_cycle_factor(const config::ScheduleSection& s, double step, double steps) {
  const double peak = s.peak_at * steps - 1, last = steps - 1;
  if (step <= peak) return anneal(s.annealing, s.initial_factor, 1, peak > 0 ? step / peak : 1);
  return anneal(s.annealing, 1, s.final_factor, last > peak ? (step - peak) / (last - peak) : 1);
}

/// Returns how far the fall of cosine and polynomial has come, from 0 to 1. It begins after
/// schedule.hold and ends with the last step.
double fallen(double hold, double step, double steps) {
  const double last = steps - 1, held = hold * last;
  return last > held ? std::max(step - held, 0.0) / (last - held) : 0;
}

double batch_factor(const config::ScheduleSection& s, int64_t global_batch) {
  const double ratio = static_cast<double>(global_batch) / static_cast<double>(s.base_batch);
  return s.scale_with_batch == config::BatchScaling::none     ? 1
         : s.scale_with_batch == config::BatchScaling::linear ? ratio
                                                              : std::sqrt(ratio);
}

void require(bool condition, std::string_view what) {
  if (!condition) throw ConfigError(fmt::format("learning-rate schedule: {}", what));
}

}  // namespace

LearningRateSchedule::LearningRateSchedule(config::ScheduleSection section,
                                           const ScheduleSpan& span)
    : s_(std::move(section)), span_(span) {
  require(std::isfinite(span.rate) && span.rate >= 0, "the rate must be a number >= 0");
  require(span.total_steps >= 1 && span.steps_per_epoch >= 1,
          "it needs at least one step, and one step in an epoch");
  if (s_.warmup_steps == 0)
    s_.warmup_steps = std::llround(s_.warmup_epochs * static_cast<double>(span.steps_per_epoch));
  require(
      s_.warmup_steps >= 0 && s_.warmup_steps < span_.total_steps,
      fmt::format("the warm-up of {} steps (schedule.warmup_steps, schedule.warmup_epochs) must "
                  "be shorter than the run of {} (run.epochs, run.max_steps); for example --set "
                  "schedule.warmup_steps={}",
                  s_.warmup_steps, span_.total_steps, span_.total_steps / 10));
  require(s_.base_batch >= 1 && span.global_batch >= 1, "batch sizes must be >= 1");
  require(s_.peak_at >= 0 && s_.peak_at <= 1, "the peak must lie within the run (0 to 1)");
  require(std::ranges::adjacent_find(s_.milestones, std::ranges::greater_equal{}) ==
              s_.milestones.end(),
          "milestones must rise");
  require(s_.factors.empty() || s_.factors.size() == s_.milestones.size(),
          "there is a factor for each milestone, or none");
  if (s_.milestone_unit == config::MilestoneUnit::epochs)
    for (int64_t& milestone : s_.milestones) milestone *= span.steps_per_epoch;
  s_.milestone_unit = config::MilestoneUnit::steps;
  scaled_rate_ = span.rate * batch_factor(s_, span.global_batch);
}

double LearningRateSchedule::factor(int64_t step) const {
  using Kind = config::ScheduleKind;
  const auto own_step = static_cast<double>(
      std::clamp(step, s_.warmup_steps, span_.total_steps - 1) - s_.warmup_steps);
  const auto own_steps = static_cast<double>(span_.total_steps - s_.warmup_steps);
  switch (s_.name) {
    case Kind::constant:
    case Kind::plateau: return 1;
    case Kind::steps: {
      const auto passed = std::ranges::upper_bound(s_.milestones, step) - s_.milestones.begin();
      if (s_.factors.empty()) return std::pow(s_.gamma, static_cast<double>(passed));
      return passed == 0 ? 1 : s_.factors[static_cast<size_t>(passed - 1)];
    }
    case Kind::polynomial:
      return s_.final_factor +
             (1 - s_.final_factor) * std::pow(1 - fallen(s_.hold, own_step, own_steps), s_.power);
    case Kind::cosine:
      return anneal(config::Annealing::cosine, 1, s_.final_factor,
                    fallen(s_.hold, own_step, own_steps));
    case Kind::one_cycle: return one_cycle_factor(s_, own_step, own_steps);
    case Kind::inverse_sqrt:
      return std::sqrt(static_cast<double>(s_.warmup_steps + 1) /
                       static_cast<double>(std::max(step, s_.warmup_steps) + 1));
  }
  return 1;
}

double LearningRateSchedule::rate(int64_t step) const {
  CHECK(step >= 0);
  if (step >= s_.warmup_steps) return scaled_rate_ * factor(step);
  const double progress =
      s_.warmup_rise == config::WarmupRise::epochs
          ? static_cast<double>(step / span_.steps_per_epoch * span_.steps_per_epoch) /
                static_cast<double>(s_.warmup_steps)
          : static_cast<double>(step + 1) / static_cast<double>(s_.warmup_steps + 1);
  return scaled_rate_ * factor(s_.warmup_steps) *
         (s_.warmup_factor + (1 - s_.warmup_factor) * progress);
}

}  // namespace tutti::train
