#include "tutti/cli/step_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tutti {
namespace {

/// Op of each of the plan's steps, by the name that timings bear.
std::map<std::string, std::string> ops_of(const Plan& plan) {
  std::map<std::string, std::string> ops;
  const auto note = [&](const Step& step) { ops[step.name] = step.request.op->name(); };
  for (const Step& step : plan.packs) note(step);
  for (const PlanBand& band : plan.bands)
    for (const Step& step : band.steps) note(step);
  for (const Step& step : plan.updates) note(step);
  return ops;
}

}  // namespace

void print_profile(StepBench& bench, int64_t steps, bool print) {
  bench.executor().set_profiling(true);
  for (int64_t i = 0; i < steps; ++i) bench.step();
  const auto timings = bench.executor().take_timings();
  bench.executor().set_profiling(false);
  if (!print) return;
  const auto ops = ops_of(bench.network().training);
  std::map<std::string, std::pair<double, int>> by_kernel;
  double total = 0;
  for (const Executor::Timing& timing : timings) {
    const std::string name = timing.name.substr(0, timing.name.find(" (finish)"));
    const auto op = ops.find(name);
    auto& [seconds, count] =
        by_kernel[fmt::format("{} by {}{}", op == ops.end() ? name : op->second, timing.kernel,
                              name == timing.name ? "" : " (finish)")];
    seconds += timing.seconds;
    ++count;
    total += timing.seconds;
  }
  std::vector<std::pair<std::string, std::pair<double, int>>> rows(by_kernel.begin(),
                                                                   by_kernel.end());
  std::ranges::sort(rows,
                    [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  fmt::print(stderr, "{:>10} {:>7} {:>6}  kernel (time of thread 0)\n", "ms a step", "share",
             "calls");
  for (const auto& [name, row] : rows)
    fmt::print(stderr, "{:>10.3f} {:>6.1f}% {:>6}  {}\n",
               row.first * 1e3 / static_cast<double>(steps), 100 * row.first / total, row.second,
               name);
}

}  // namespace tutti
