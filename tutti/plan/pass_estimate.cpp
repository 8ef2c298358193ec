#include "tutti/plan/pass_estimate.h"

#include <algorithm>
#include <map>

#include "tutti/plan/kernel_timer.h"

namespace tutti::plan {
namespace {

double seconds_of_tile(const Step& step, const backend::Backend& backend) {
  constexpr double kOneRunIsEnough = 1e-6;  // so that any kernel that takes milliseconds runs once
  for (const backend::KernelCandidate& c : backend.candidates(step.request))
    if (c.refusal.empty() && c.name == step.kernel)
      return KernelTimer(step.request).seconds(c, kOneRunIsEnough);
  return 0;
}

}  // namespace

double estimated_seconds(const Plan& plan, const backend::Backend& backend) {
  std::map<std::string, double> known;
  double sum = 0;
  for (const PlanBand& band : plan.bands) {
    const int64_t share = (band.samples + plan.options.threads - 1) / plan.options.threads;
    const double runs = band.whole ? 1.0 / plan.options.threads : tiles_of(share, band.tile);
    for (const Step& step : band.steps) {
      const auto [at, added] =
          known.try_emplace(problem_text(step.request) + " by " + step.kernel, 0);
      if (added) at->second = seconds_of_tile(step, backend);
      sum += at->second * runs;
    }
  }
  return sum;
}

}  // namespace tutti::plan
