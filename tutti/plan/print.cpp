#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/numeric/hash.h"
#include "tutti/plan/plan.h"
#include "tutti/plan/slow_steps.h"

namespace tutti::plan {
namespace {

std::string base_name(const Plan& plan, int base) {
  static constexpr const char* kNames[] = {"parameters", "tables",    "statistics",
                                           "state",      "gradients", "scalars",
                                           "arena",      "packed",    "tile"};
  if (base < kFirstInput) return kNames[base];
  const auto i = static_cast<size_t>(base - kFirstInput);
  if (i < plan.inputs.size()) return plan.graph[plan.inputs[i]].name;
  return fmt::format("sum{}", i - plan.inputs.size());
}

void print_operands(std::string& text, const Plan& plan, const std::vector<TensorDesc>& descs,
                    const std::vector<Place>& places) {
  for (size_t i = 0; i < places.size(); ++i)
    text += fmt::format(" {}+{}[{}]", base_name(plan, places[i].base), places[i].offset, descs[i]);
}

void print_step(std::string& text, const Plan& plan, const Step& step, bool with_refusals) {
  const std::string attributes = step.request.op->attributes();
  text += fmt::format(
      "  {} = {}{} by {}{}\n     ", step.name, step.request.op->name(),
      attributes.empty() ? "" : " {" + attributes + "}", step.kernel,
      step.speed == backend::KernelSpeed::fast || runs_on_host(step) ? "" : " (reference loops)");
  print_operands(text, plan, step.request.in, step.in);
  text += " ->";
  print_operands(text, plan, step.request.out, step.out);
  text += '\n';
  if (!with_refusals) return;
  if (!step.trial.empty()) text += fmt::format("      tried on {}\n", step.trial);
  for (const std::string& refused : step.refused) text += "      not " + refused + '\n';
}

void print_start(std::string& text, const Plan& plan, int e) {
  const PlanExchange& exchange = plan.exchanges[static_cast<size_t>(e)];
  const graph::Node& node = plan.graph.nodes()[static_cast<size_t>(exchange.node)];
  text += fmt::format("  start exchange {}: {} = {} {{{}}}\n     ", e, node.name, node.op->name(),
                      node.op->attributes());
  print_operands(text, plan, exchange.in_desc, exchange.in);
  text += " ->";
  print_operands(text, plan, exchange.out_desc, exchange.out);
  text += '\n';
}

std::string list_of(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ", "));
}

void print_stage(std::string& text, const Plan& plan, size_t s, bool with_refusals) {
  const PlanStage& stage = plan.stages[s];
  text += fmt::format("stage {}", s);
  if (!stage.after.empty()) text += " after " + list_of(stage.after);
  if (stage.bucket >= 0) text += fmt::format(", of bucket {}", stage.bucket);
  if (stage.first_use < static_cast<int>(plan.bands.size()))
    text += fmt::format(", before band {} of the next step", stage.first_use);
  text += '\n';
  for (const int e : stage.waits) text += fmt::format("  wait for exchange {}\n", e);
  for (const int u : stage.updates)
    print_step(text, plan, plan.updates[static_cast<size_t>(u)], with_refusals);
  for (const int k : stage.packs)
    text += fmt::format("  {}\n", plan.packs[static_cast<size_t>(k)].name);
  for (const int e : stage.starts) print_start(text, plan, e);
}

}  // namespace

std::string Plan::to_string(bool with_refusals) const {
  std::string text = fmt::format("plan: batch {}, {} threads, layout {}, {} bands, {} buckets\n",
                                 batch, options.threads, layout, bands.size(), buckets.size());
  text += fmt::format(
      "memory: results {} B, packed weights {} B, tile scratch {} B, workspace {} B and "
      "accumulators {} B a thread, parameters {} B, state {} B, statistics {} B\n",
      arena_bytes, packed_bytes, tile_scratch_bytes, workspace_bytes, state_bytes,
      variables.parameter_bytes, variables.trained_bytes * variables.state_kinds.size(),
      variables.statistic_bytes);
  if (variables.table_bytes > 0) text += fmt::format("tables {} B\n", variables.table_bytes);
  for (const int e : begins) print_start(text, *this, e);
  if (!packs.empty()) text += "pack weights\n";
  for (const Step& step : packs) print_step(text, *this, step, with_refusals);
  for (size_t b = 0; b < bands.size(); ++b) {
    const PlanBand& band = bands[b];
    text += fmt::format("band {}", b);
    if (band.repeats >= 0) text += fmt::format(", again of band {}", band.repeats);
    text +=
        band.whole
            ? " (whole)\n"
            : fmt::format(": tiles of {}{}{}\n", band.tile,
                          band.samples != batch ? fmt::format(" among {} slabs", band.samples) : "",
                          band.reduces ? ", reduces" : "");
    if (!band.early.empty())
      text += fmt::format("  {} of {} before the wait\n", std::ranges::count(band.early, true),
                          band.early.size());
    for (const int e : band.waits) text += fmt::format("  wait for exchange {}\n", e);
    for (const Step& step : band.steps) print_step(text, *this, step, with_refusals);
    for (const int e : band.starts) print_start(text, *this, e);
  }
  if (!stages.empty()) text += "update\n";
  for (size_t s = 0; s < stages.size(); ++s) print_stage(text, *this, s, with_refusals);
  return text;
}

uint64_t Plan::hash() const { return fnv1a(to_string()); }

}  // namespace tutti::plan
