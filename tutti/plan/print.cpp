#include <fmt/format.h>

#include "tutti/base/hash.h"
#include "tutti/plan/plan.h"

namespace tutti {
namespace {

std::string base_name(const Plan& plan, int base) {
  static constexpr const char* kNames[] = {"parameters", "statistics", "state",  "gradients",
                                           "scalars",    "arena",      "packed", "tile"};
  if (base < kFirstInput) return kNames[base];
  const auto i = static_cast<size_t>(base - kFirstInput);
  if (i < plan.inputs.size()) return plan.graph[plan.inputs[i]].name;
  return fmt::format("sum{}", i - plan.inputs.size());
}

void print_operands(std::string& text, const Plan& plan, const std::vector<TensorDesc>& descs,
                    const std::vector<Place>& places) {
  for (size_t i = 0; i < places.size(); ++i)
    text += fmt::format(" {}+{}[{}]", base_name(plan, places[i].base), places[i].offset,
                        descs[i].to_string());
}

void print_step(std::string& text, const Plan& plan, const Step& step, bool with_refusals) {
  const std::string attributes = step.request.op->attributes();
  text += fmt::format("  {} = {}{} by {}\n     ", step.name, step.request.op->name(),
                      attributes.empty() ? "" : " {" + attributes + "}", step.kernel);
  print_operands(text, plan, step.request.in, step.in);
  text += " ->";
  print_operands(text, plan, step.request.out, step.out);
  text += '\n';
  if (!with_refusals) return;
  for (const std::string& refused : step.refused) text += "      not " + refused + '\n';
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
  if (!packs.empty()) text += "pack weights\n";
  for (const Step& step : packs) print_step(text, *this, step, with_refusals);
  for (size_t b = 0; b < bands.size(); ++b) {
    const PlanBand& band = bands[b];
    text +=
        band.whole
            ? fmt::format("band {} (whole)\n", b)
            : fmt::format("band {}: tiles of {}{}{}\n", b, band.tile,
                          band.samples != batch ? fmt::format(" among {} slabs", band.samples) : "",
                          band.reduces ? ", reduces" : "");
    for (const int e : band.waits) text += fmt::format("  wait for exchange {}\n", e);
    for (const Step& step : band.steps) print_step(text, *this, step, with_refusals);
    for (const int e : band.starts) {
      const PlanExchange& exchange = exchanges[static_cast<size_t>(e)];
      const Node& node = graph.nodes()[static_cast<size_t>(exchange.node)];
      text +=
          fmt::format("  start exchange {}: {} {{{}}}\n     ", e, node.name, node.op->attributes());
      print_operands(text, *this, exchange.in_desc, exchange.in);
      text += " ->";
      print_operands(text, *this, exchange.out_desc, exchange.out);
      text += '\n';
    }
    for (const int bucket : band.ready)
      text += fmt::format("  start the sum of bucket {}: {} B at gradients+{}\n", bucket,
                          buckets[static_cast<size_t>(bucket)].bytes,
                          buckets[static_cast<size_t>(bucket)].offset);
  }
  if (!updates.empty()) text += "update\n";
  for (const UpdateStep& update : updates) {
    text += fmt::format("  once bucket {} is there, before band {} of the next step\n",
                        update.bucket, buckets[static_cast<size_t>(update.bucket)].first_use);
    print_step(text, *this, update.step, with_refusals);
    if (update.sums_norms)
      text += fmt::format("  sum the norms of bucket {} over shards\n", update.bucket);
  }
  return text;
}

uint64_t Plan::hash() const { return fnv1a(to_string()); }

}  // namespace tutti
