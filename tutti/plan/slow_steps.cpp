#include "tutti/plan/slow_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::plan {

double flop_of(const Plan& plan, const Step& step) {
  return plan.graph.flop(plan.graph.nodes()[static_cast<size_t>(step.node)]);
}

std::vector<const Step*> slow_steps(const Plan& plan) {
  constexpr double kLeastShare = 1e-3;
  double all = 0;
  for (const PlanBand& band : plan.bands)
    for (const Step& step : band.steps) all += flop_of(plan, step);
  std::vector<const Step*> slow;
  for (const PlanBand& band : plan.bands)
    for (const Step& step : band.steps)
      if (step.speed != backend::KernelSpeed::fast && flop_of(plan, step) >= kLeastShare * all)
        slow.push_back(&step);
  return slow;
}

std::string slow_steps_text(const Plan& plan) {
  constexpr size_t kNamed = 4;
  const std::vector<const Step*> slow = slow_steps(plan);
  if (slow.empty()) return {};
  std::string names;
  for (size_t i = 0; i < std::min(slow.size(), kNamed); ++i)
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", slow[i]->name, slow[i]->kernel);
  if (slow.size() > kNamed) names += fmt::format(" and {} more", slow.size() - kNamed);
  return fmt::format(
      "{} of the plan's steps in layout {} run reference loops, 10 to 100 times as slow as kernels "
      "that are made for speed: {}",
      slow.size(), plan.layout, names);
}

}  // namespace tutti::plan
