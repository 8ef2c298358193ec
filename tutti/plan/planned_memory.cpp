#include "tutti/plan/planned_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/plan/device_memory.h"

namespace tutti::plan {

namespace {

/// Returns the memory of a plan whose kernels run on a device; `memory` is that of the same plan on
/// threads.
PlannedMemory memory_there(const Plan& plan, PlannedMemory memory) {
  const MemoryLimit& limit = plan.options.memory;
  const DeviceInputs inputs = device_inputs(plan);
  memory.variables += plan.variables.statistic_bytes * static_cast<size_t>(limit.statistics);
  if (!plan.buckets.empty()) memory.gradients += device_finding_bytes(plan.variables.trained_bytes);
  memory.scratch = plan.packed_bytes + plan.tile_scratch_bytes + plan.workspace_bytes +
                   kPassSlots * inputs.pass_bytes + inputs.update_bytes + device_number_bytes(plan);
  return memory;
}

PlannedMemory memory_here(const Plan& plan) {
  const Variables& variables = plan.variables;
  const MemoryLimit& limit = plan.options.memory;
  const auto threads = static_cast<size_t>(plan.options.threads);
  const size_t replica = variables.parameter_bytes + variables.statistic_bytes +
                         variables.trained_bytes * variables.state_kinds.size();
  const size_t kept = variables.table_bytes + replica * static_cast<size_t>(limit.replicas) +
                      variables.parameter_bytes * static_cast<size_t>(limit.shown) +
                      variables.trained_bytes * static_cast<size_t>(limit.met) +
                      variables.statistic_bytes;  // averaged over replicas
  return {.variables = kept,
          .gradients = variables.trained_bytes * static_cast<size_t>(limit.gradients + limit.sums),
          .results = plan.arena_bytes * static_cast<size_t>(limit.arenas),
          .scratch = plan.packed_bytes +
                     threads * (plan.tile_scratch_bytes + plan.workspace_bytes) +
                     plan.first_state_bytes + (threads - 1) * plan.state_bytes,
          .besides = limit.besides,
          .copies = std::min(limit.copies, kept)};
}

}  // namespace

PlannedMemory planned_memory(const Plan& plan) {
  const PlannedMemory memory = memory_here(plan);
  return plan.on_device ? memory_there(plan, memory) : memory;
}

size_t arena_limit(const Plan& plan) {
  const MemoryLimit& limit = plan.options.memory;
  const PlannedMemory memory = planned_memory(plan);
  const size_t others = memory.total() - memory.results;
  return others >= limit.bytes ? 0 : (limit.bytes - others) / static_cast<size_t>(limit.arenas);
}

namespace {

std::string mebibytes(size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

std::string memory_text(const Plan& plan) {
  const PlannedMemory memory = planned_memory(plan);
  std::string text = fmt::format(
      "memory of a rank: {}: variables {}, gradients {}, results {}, scratch {}",
      mebibytes(memory.total()), mebibytes(memory.variables), mebibytes(memory.gradients),
      mebibytes(memory.results), mebibytes(memory.scratch));
  if (memory.besides > 0) text += fmt::format(", evaluation {}", mebibytes(memory.besides));
  if (memory.copies > 0) text += fmt::format(", checkpoint {}", mebibytes(memory.copies));
  if (plan.options.memory.bytes > 0)
    text += fmt::format("; plan.memory = {}", mebibytes(plan.options.memory.bytes));
  if (const Recomputed& again = plan.recomputed; again.results > 0)
    text += fmt::format(
        "\ncomputed again: {} results, {:.3f} GFLOP a pass besides {:.3f} ({:.1f} %); kept, "
        "results "
        "would be {}",
        again.results, again.flop * 1e-9, plan.graph.flop() * 1e-9,
        100 * again.flop / plan.graph.flop(),
        mebibytes(again.arena_bytes * static_cast<size_t>(plan.options.memory.arenas)));
  return text;
}

bool fits_memory(const Plan& plan) {
  return plan.options.memory.bytes == 0 ||
         planned_memory(plan).total() <= plan.options.memory.bytes;
}

}  // namespace tutti::plan
