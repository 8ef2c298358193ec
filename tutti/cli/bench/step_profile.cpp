#include "tutti/cli/bench/step_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tutti::cli {
namespace {

/// The facts that a profile reports of one step of the plan.
struct ProfiledStep {
  std::string op;
  int64_t tile = 0;  ///< samples; 0: not by batch
  double flop = 0;   ///< for the whole batch
};

ProfiledStep profiled(const plan::Step& step) {
  const backend::KernelRequest& request = step.request;
  const auto types = [](const std::vector<TensorDesc>& descs, const std::vector<bool>& batched) {
    std::vector<graph::ValueType> all;
    for (size_t i = 0; i < descs.size(); ++i) all.push_back({descs[i], batched[i]});
    return all;
  };
  ProfiledStep p{.op = std::string(request.op->name())};
  for (size_t i = 0; i < request.in.size() && p.tile == 0; ++i)
    if (step.in_batched[i]) p.tile = request.in[i].shape[0];
  p.flop =
      request.op->flop(types(request.in, step.in_batched), types(request.out, step.out_batched));
  if (p.tile > 0) p.flop *= static_cast<double>(step.samples) / static_cast<double>(p.tile);
  return p;
}

/// Returns the plan's steps, by the names in the timings.
std::map<std::string, ProfiledStep> steps_of(const plan::Plan& plan) {
  std::map<std::string, ProfiledStep> all;
  const auto note = [&](const plan::Step& step) { all[step.name] = profiled(step); };
  for (const plan::Step& step : plan.packs) note(step);
  for (const plan::PlanBand& band : plan.bands)
    for (const plan::Step& step : band.steps) note(step);
  for (const plan::Step& step : plan.updates) note(step);
  return all;
}

/// Prints the slowest single steps: their rates show which layer is far from the machine's peak.
void print_slowest(const std::vector<plan::Executor::Timing>& timings,
                   const std::map<std::string, ProfiledStep>& steps, double runs, int threads) {
  constexpr size_t kShown = 40;
  std::vector<plan::Executor::Timing> sorted = timings;
  std::ranges::sort(sorted, std::greater<>(), &plan::Executor::Timing::seconds);
  fmt::print(stderr, "{:>10} {:>10} {:>6}  the {} slowest steps\n", "ms a step", "GFLOP/s", "tile",
             std::min(kShown, sorted.size()));
  for (size_t i = 0; i < std::min(kShown, sorted.size()); ++i) {
    const plan::Executor::Timing& timing = sorted[i];
    const double seconds = timing.seconds / runs;
    const auto step = steps.find(timing.name);
    const bool known = step != steps.end();
    fmt::print(stderr, "{:>10.3f} {:>10} {:>6}  {} of {} by {}\n", seconds * 1e3,
               known && step->second.flop > 0
                   ? fmt::format("{:.1f}", step->second.flop / seconds / threads * 1e-9)
                   : "",
               known && step->second.tile > 0 ? std::to_string(step->second.tile) : "",
               known ? step->second.op : "", timing.name, timing.kernel);
  }
}

}  // namespace

void print_profile(StepBench& bench, int64_t steps, bool print) {
  bench.executor().set_profiling(true);
  for (int64_t i = 0; i < steps; ++i) bench.step();
  const auto timings = bench.executor().take_timings();
  bench.executor().set_profiling(false);
  if (!print) return;
  const plan::Plan& plan = bench.network().training;
  const auto known = steps_of(plan);
  std::map<std::string, std::pair<double, int>> by_kernel;
  double total = 0;
  for (const plan::Executor::Timing& timing : timings) {
    const std::string name = timing.name.substr(0, timing.name.find(" (finish)"));
    const auto step = known.find(name);
    auto& [seconds, count] =
        by_kernel[fmt::format("{} by {}{}", step == known.end() ? name : step->second.op,
                              timing.kernel, name == timing.name ? "" : " (finish)")];
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
  print_slowest(timings, known, static_cast<double>(steps), plan.options.threads);
}

}  // namespace tutti::cli
