#include "tutti/plan/compile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/plan/bands.h"
#include "tutti/plan/kernel_choice.h"
#include "tutti/plan/layouts.h"
#include "tutti/plan/plan_exchanges.h"
#include "tutti/plan/plan_stages.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/plan/recompute.h"
#include "tutti/plan/result_places.h"
#include "tutti/plan/step_problem.h"
#include "tutti/plan/steps.h"
#include "tutti/plan/tiles.h"
#include "tutti/plan/variable_places.h"

namespace tutti::plan {
namespace {

/// Gives the bands, which are cut already, their steps, exchanges and stages.
void fill_bands(std::vector<PlanBand>& bands, StepList& steps, ExchangeList& exchanges,
                const std::vector<PlanStage>& stages) {
  for (size_t b = 0; b < bands.size(); ++b) {
    bands[b].steps = std::move(steps.bands[b]);
    bands[b].waits = std::move(exchanges.waits[b]);
    bands[b].starts = std::move(exchanges.starts[b]);
    bands[b].early = std::move(exchanges.early[b]);
    for (const Step& step : bands[b].steps) bands[b].reduces |= step.walk == graph::Walk::reduce;
  }
  for (size_t s = 0; s < stages.size(); ++s)
    if (const auto b = static_cast<size_t>(stages[s].first_use); b < bands.size())
      bands[b].stages.push_back(static_cast<int>(s));
}

/// Returns the names of the ops of which no kernel accepts some step. `plan` has its activations'
/// layouts and its tiles.
std::string ops_without_kernel(const Plan& plan, const Schedule& schedule,
                               const backend::Backend& backend) {
  std::set<std::string> names;
  const auto look = [&](int n, const PlanBand* band) {
    const Step step = step_of(plan.graph, plan.descs, n, band);
    if (std::ranges::none_of(backend.candidates(step.request),
                             [](const auto& c) { return c.refusal.empty(); }))
      names.emplace(step.request.op->name());
  };
  for (size_t b = 0; b < schedule.bands.size(); ++b)
    for (const int n : schedule.bands[b].nodes) look(n, &plan.bands[b]);
  for (const int n : schedule.updates)
    if (plan.graph.walk(plan.graph.nodes()[static_cast<size_t>(n)]) != graph::Walk::exchange)
      look(n, nullptr);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Each pass reads what the earlier ones have made. Steps are made late, when all their operands
/// have places.
void compile_cut(Plan& plan, const Schedule& schedule, const backend::Backend& backend) {
  KernelChooser chooser(backend, plan.options);
  plan.descs = lay_out_variables(plan, schedule, chooser);

  // Give each value a place.
  plan.variables = plan.options.variables ? *plan.options.variables : size_arenas(plan, schedule);
  plan.places = variable_places(plan);
  const ResultPlaces results = place_results(plan, schedule);
  for (const auto& [value, place] : results.places) plan.places[value] = place;
  plan.arena_bytes = results.arena_bytes;
  plan.tile_scratch_bytes = results.tile_scratch_bytes;

  // List what ranks exchange, and where sums of gradients will lie.
  ExchangeList exchanges = list_exchanges(plan, schedule);
  plan.exchanges = std::move(exchanges.all);
  plan.buckets = std::move(exchanges.buckets);
  plan.begins = std::move(exchanges.begins);
  plan.waits_at_end = std::move(exchanges.waits_at_end);
  plan.turning = exchanges.turning;

  // List what is run: every step with its kernel, and the update in stages.
  StepList steps = make_steps(plan, schedule, chooser);
  plan.updates = std::move(steps.updates);
  plan.packs = std::move(steps.packs);
  plan.pack_ops = std::move(steps.pack_ops);
  plan.packed_bytes = steps.packed_bytes;
  plan.workspace_bytes = steps.workspace_bytes;
  plan.state_bytes = steps.state_bytes;
  plan.first_state_bytes = steps.first_state_bytes;
  plan.stages = make_stages(plan, schedule);

  fill_bands(plan.bands, steps, exchanges, plan.stages);
}

Plan compile_schedule(const graph::Graph& graph, const Schedule& schedule,
                      const backend::Backend& backend, const PlanOptions& options) {
  Plan plan;
  plan.graph = graph;
  plan.options = options;
  plan.layout = options.layout;
  plan.on_device = backend.device() != nullptr;
  plan.inputs = graph.with_role(graph::Role::input);
  plan.batch = batch_of(graph);

  // Lay out each value, and cut the batch.
  plan.descs = lay_out_activations(graph, backend, options.layout);
  plan.bands = cut_into_tiles(plan, schedule, backend.tile_bytes());
  const Plan cut = backend.device() ? plan : Plan();
  try {
    compile_cut(plan, schedule, backend);
  } catch (const DeviceError& error) {
    if (!backend.device()) throw;
    throw DeviceError(fmt::format("{}\nops without a kernel on the device: {}", error.what(),
                                  ops_without_kernel(cut, schedule, backend)));
  }
  return plan;
}

/// Computes as little again as the limit requires. Values that leave the arena may then lie in
/// tiles, so the arena's share may shrink with each attempt.
Plan compile_with_less(const graph::Graph& graph, const Schedule& schedule,
                       const backend::Backend& backend, const Plan& all) {
  constexpr int kTries = 4;
  size_t limit = arena_limit(all);
  for (int i = 1;; ++i) {
    const BandsAgain again = recompute_results(all, schedule, limit);
    Plan plan =
        compile_schedule(graph, with_bands_again(schedule, again.bands), backend, all.options);
    plan.recomputed = {again.results, again.flop, all.arena_bytes};
    const bool is_least = plan.arena_bytes > limit;
    if (fits_memory(plan) || is_least || i == kTries) return plan;
    limit = arena_limit(plan);
  }
}

}  // namespace

Plan compile_with_layout(const graph::Graph& graph, const backend::Backend& backend,
                         const PlanOptions& options) {
  const Schedule schedule = make_schedule(graph);
  Plan plan = compile_schedule(graph, schedule, backend, options);
  if (fits_memory(plan)) return plan;
  return compile_with_less(graph, schedule, backend, plan);
}

}  // namespace tutti::plan
