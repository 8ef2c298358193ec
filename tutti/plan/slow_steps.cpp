#include "tutti/plan/slow_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tutti::plan {

double flop_of(const Plan& plan, const Step& step) {
  return plan.graph.flop(plan.graph.nodes()[static_cast<size_t>(step.node)]);
}

bool runs_on_host(const Step& step) { return step.kernel.starts_with("host:"); }

std::string host_steps_text(const Plan& plan) {
  std::map<std::string, int> ops;
  int steps = 0;
  const auto count = [&](const std::vector<Step>& list) {
    for (const Step& step : list)
      if (runs_on_host(step)) ++ops[std::string(step.request.op->name())], ++steps;
  };
  count(plan.packs);
  for (const PlanBand& band : plan.bands) count(band.steps);
  count(plan.updates);
  if (steps == 0) return {};
  std::string names;
  for (const auto& [op, times] : ops)
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", op, times);
  return fmt::format(
      "{} steps run on the host, because the device has no kernel for them or plan.host_kernels "
      "gives the host all: {}",
      steps, names);
}

std::vector<const Step*> slow_steps(const Plan& plan) {
  constexpr double kLeastShare = 1e-3;
  double all = 0;
  for (const PlanBand& band : plan.bands)
    for (const Step& step : band.steps) all += flop_of(plan, step);
  std::vector<const Step*> slow;
  for (const PlanBand& band : plan.bands)
    for (const Step& step : band.steps)
      if (step.speed != backend::KernelSpeed::fast && !runs_on_host(step) &&
          flop_of(plan, step) >= kLeastShare * all)
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
