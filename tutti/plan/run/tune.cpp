#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <set>

#include "tutti/base/log.h"
#include "tutti/base/numeric/hash.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/bands.h"
#include "tutti/plan/compile.h"
#include "tutti/plan/pass_estimate.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/plan/run/executor.h"
#include "tutti/plan/slow_steps.h"

namespace tutti::plan {
namespace {

/// The layouts that the backend would try for any activation of the graph, most wanted first.
std::vector<std::string> layouts_to_try(const graph::Graph& graph,
                                        const backend::Backend& backend) {
  std::vector<std::string> names;
  for (const graph::ValueInfo& info : graph.values()) {
    if (!info.type.batched || info.role != graph::Role::result || info.type.desc.shape.rank() < 3)
      continue;
    for (const Layout& layout :
         backend.activation_layouts(info.type.desc.shape, info.type.desc.dtype)) {
      const std::string name = layout.to_string(info.type.desc.shape.rank());
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  if (names.empty()) names.push_back("plain");
  return names;
}

/// Returns the name under which the layout of a graph is recorded. Buckets and updates are not
/// part of it: they see no activations, and their number may follow from a measurement.
std::string layout_problem(const graph::Graph& graph, int threads) {
  std::string text;
  for (const graph::Node& node : graph.nodes()) {
    if (exchange_kind(graph, node) == ExchangeKind::gradients) break;
    text += fmt::format("{} {} {}", node.name, node.op->name(), node.op->attributes());
    for (const graph::Value v : node.in) text += fmt::format(" {}", v.id);
    for (const graph::Value v : node.out) text += " " + graph.type(v).desc.to_string();
    text += '\n';
  }
  return fmt::format("{}{:016x} on {} threads", kLayoutProblem, fnv1a(text), threads);
}

/// Returns the plan's arithmetic, with slow kernels (the oracle's, oneDNN's reference) weighted by
/// how much slower they are than a kernel made for speed. Coarse, but it spares measuring layouts
/// that would take seconds a pass.
double weighted_flop(const Plan& plan) {
  constexpr double kReferenceWeight = 200;
  double flop = 0;
  for (const PlanBand& band : plan.bands)
    for (const Step& step : band.steps) {
      const bool slow = step.speed != backend::KernelSpeed::fast;
      flop += flop_of(plan, step) * (slow ? kReferenceWeight : 1);
    }
  return flop;
}

/// Exchanges of a rank alone, because only the arithmetic is timed.
class NoExchanges final : public Exchanges {
  void start(int) override {}
  bool done(int) override { return true; }
  ExchangeOutput finish(int) override { return {}; }
};

/// Runs a plan on random operands repeatedly.
class PassTimer {
 public:
  PassTimer(const Plan& plan, const backend::Backend& backend)
      : executor_(make_executor(plan, backend)), parameters_(plan.variables.parameter_bytes),
        gradients_(plan.variables.trained_bytes), statistics_(plan.variables.statistic_bytes),
        tables_(plan.variables.table_bytes),
        state_(plan.variables.trained_bytes * plan.variables.state_kinds.size()) {
    Rng rng(1, Purpose::test, 0);
    for (size_t i = 0; i < plan.variables.parameter_bytes / 4; ++i)
      parameters_.as<float>()[i] = (rng.uniform() - 0.5f) * 0.1f;
    executor_->bind({.parameters = parameters_.data(),
                     .tables = tables_.data(),
                     .statistics = statistics_.data(),
                     .state = state_.data(),
                     .gradients = gradients_.data()});
    for (const graph::Value v : plan.inputs) {
      device::Buffer& buffer = inputs_.emplace_back(plan.desc(v).bytes());
      if (plan.desc(v).dtype == DType::f32)
        for (size_t i = 0; i < buffer.bytes() / 4; ++i)
          buffer.as<float>()[i] = rng.uniform() - 0.5f;
      executor_->bind_input(v, buffer.data());
    }
    executor_->set_exchanges(nobody_);
    executor_->pack();
  }

  double seconds() {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    executor_->run({});
    executor_->settle();  // waits for a device
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  NoExchanges nobody_;
  std::unique_ptr<Executor> executor_;
  device::Buffer parameters_, gradients_, statistics_, tables_, state_;
  std::vector<device::Buffer> inputs_;
};

constexpr double kLongPass = 0.5;  // volumes take seconds a pass; one pass is enough

/// Returns the better of two passes after one to warm up. Stops at the first pass that takes longer
/// than kLongPass and, once warm, at one that takes longer than `give_up_seconds`.
double pass_seconds(const Plan& plan, const backend::Backend& backend, double give_up_seconds) {
  PassTimer timer(plan, backend);
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 3; ++run) {
    const double seconds = timer.seconds();
    if (run > 0 || seconds > kLongPass) best = std::min(best, seconds);
    if (seconds > kLongPass || (run > 0 && seconds > give_up_seconds)) break;
  }
  return best;
}

/// A layout that may be chosen.
struct Contender {
  Plan plan;
  double seconds = std::numeric_limits<double>::infinity();
};

/// If the two fastest are close, they run alternately, so that other work on the machine slows
/// both. Each run allocates its own memory, so that there is never more than one at once.
void run_in_turns(std::vector<Contender>& contenders, const backend::Backend& backend) {
  constexpr double kClose = 1.1;  // relative to the faster one
  constexpr int kTurns = 3;
  if (contenders.size() < 2) return;
  std::ranges::stable_sort(contenders, std::less{}, &Contender::seconds);
  const double slower = contenders[1].seconds;
  if (slower > kClose * contenders[0].seconds || slower > kLongPass) return;
  for (int turn = 0; turn < kTurns; ++turn)
    for (Contender* c : {&contenders[0], &contenders[1]})
      c->seconds = std::min(c->seconds, pass_seconds(c->plan, backend, 2 * slower));
  for (const Contender* c : {&contenders[0], &contenders[1]})
    log::debug("layout {}: {:.2f} ms a pass, in turns", c->plan.layout, c->seconds * 1e3);
}

/// Keeps the plans that fit or, if none does, only the smallest.
void keep_what_fits(std::vector<Plan>& plans) {
  if (std::ranges::any_of(plans, fits_memory)) {
    std::erase_if(plans, [](const Plan& plan) { return !fits_memory(plan); });
    return;
  }
  const auto total = [](const Plan& plan) { return planned_memory(plan).total(); };
  std::vector<Plan> smallest;
  smallest.push_back(std::move(*std::ranges::min_element(plans, {}, total)));
  plans = std::move(smallest);
}

/// Returns, of the layouts that fit, the first with the least arithmetic in slow kernels: on a
/// processor without kernels for blocks of 16, say, the preferred layout would take a hundred times
/// as long.
std::string unmeasured_layout(const graph::Graph& graph, const backend::Backend& backend,
                              PlanOptions options, const std::vector<std::string>& names) {
  std::vector<Plan> plans;
  for (const std::string& name : names) {
    options.layout = name;
    plans.push_back(compile_with_layout(graph, backend, options));
  }
  keep_what_fits(plans);
  return std::ranges::min_element(plans, {}, weighted_flop)->layout;
}

/// Returns the plan of the layout measured as fastest; its choices hold the measurements.
Plan fastest_plan(const graph::Graph& graph, const backend::Backend& backend, PlanOptions options,
                  const std::vector<std::string>& names) {
  std::vector<Plan> plans;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : names) {
    options.layout = name;
    plans.push_back(compile_with_layout(graph, backend, options));
    options.choices = plans.back().options.choices;  // nothing is measured twice
  }
  keep_what_fits(plans);
  if (plans.size() == 1) {
    plans.front().options.choices = options.choices;
    return std::move(plans.front());
  }
  for (const Plan& plan : plans) least = std::min(least, weighted_flop(plan));
  constexpr double kLong = 1e12;  // a pass of more FLOP takes many seconds: estimate, do not run
  std::vector<Contender> contenders;
  double best_seconds = std::numeric_limits<double>::infinity();
  for (Plan& plan : plans) {
    if (weighted_flop(plan) > 3 * least) {
      log::debug("layout {}: not measured, too much of its arithmetic has no fast kernel",
                 plan.layout);
      continue;
    }
    Contender& c = contenders.emplace_back(Contender{std::move(plan)});
    c.seconds = least > kLong ? estimated_seconds(c.plan, backend)
                              : pass_seconds(c.plan, backend, 2 * best_seconds);
    log::debug("layout {}: {:.2f} ms a pass", c.plan.layout, c.seconds * 1e3);
    best_seconds = std::min(best_seconds, c.seconds);
  }
  if (least <= kLong) run_in_turns(contenders, backend);
  Plan fastest =
      std::move(std::ranges::min_element(contenders, std::less{}, &Contender::seconds)->plan);
  fastest.options.choices = options.choices;
  return fastest;
}

}  // namespace

Plan compile(const graph::Graph& graph, const backend::Backend& backend,
             const PlanOptions& options) {
  PlanOptions fixed = options;
  if (backend.device()) fixed.measure = false;  // kernels are timed in memory of the host
  const std::string problem = layout_problem(graph, options.threads);
  const std::string recorded(fixed.choices.find(problem));
  if (options.layout != "auto") {
    if (!recorded.empty() && recorded != options.layout && fixed.choices.binding())
      throw ConfigError(
          fmt::format("the recorded layout is {}, plan.layout asks for {}: the results would not "
                      "be the same; leave plan.layout at auto",
                      recorded, options.layout));
    fixed.choices.record(problem, options.layout);
    return compile_with_layout(graph, backend, fixed);
  }
  const std::vector<std::string> names = layouts_to_try(graph, backend);
  if (!recorded.empty()) {
    const bool binding = fixed.choices.binding();
    // Plain is always available, but not among the layouts to try where others are faster.
    if (std::ranges::find(names, recorded) != names.end() || (binding && recorded == "plain")) {
      fixed.layout = recorded;
      Plan plan = compile_with_layout(graph, backend, fixed);
      if (binding || fits_memory(plan)) return plan;
    } else if (binding) {
      throw ConfigError(fmt::format("the recorded layout '{}' is not available here: {}", recorded,
                                    fixed.choices.loss()));
    } else {
      log::warn(
          "a measurement of earlier names the layout '{}', which is not available here; it is "
          "chosen anew",
          recorded);
    }
  }
  if (names.size() == 1 || !fixed.measure) {
    fixed.layout =
        names.size() == 1 ? names.front() : unmeasured_layout(graph, backend, fixed, names);
    fixed.choices.record(problem, fixed.layout);
    return compile_with_layout(graph, backend, fixed);
  }

  Plan fastest = fastest_plan(graph, backend, fixed, names);
  fastest.options.choices.record(problem, fastest.layout);
  return fastest;
}

}  // namespace tutti::plan
