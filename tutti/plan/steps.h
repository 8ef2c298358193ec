#pragma once
// Makes the steps of a plan: which kernel each node, and each packing of a weight, runs on which
// memory.

#include <vector>

#include "tutti/plan/bands.h"
#include "tutti/plan/kernel_choice.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

struct StepList {
  std::vector<std::vector<Step>> bands;  ///< by band
  std::vector<Step> updates;             ///< without exchanges
  std::vector<Step> packs;               ///< weights in the layouts that the steps want: each once
  std::vector<graph::OpPtr> pack_ops;    ///< owns the ops of `packs`
  size_t packed_bytes = 0;
  size_t workspace_bytes = 0;    ///< bytes, of the kernel that needs most
  size_t state_bytes = 0;        ///< bytes of the accumulators of the band that needs most
  size_t first_state_bytes = 0;  ///< the same for the first thread
};

/// Returns all steps, with their kernels and the places of their operands. Updates read gradients
/// where the sum of their bucket will lie. Reads graph, descs, places, buckets and the tiles of the
/// bands.
StepList make_steps(const Plan& plan, const Schedule& schedule, KernelChooser& chooser);

}  // namespace tutti::plan
