#pragma once
// The memory of a device that a plan needs there besides results, weights and workspace, and where
// its inputs lie.

#include <cstddef>
#include <vector>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Passes that may be on their way to a device at a time: each has memory for inputs of its own.
constexpr int kPassSlots = 2;
/// Floats of gradients that are looked through together, for numbers that are not finite.
constexpr size_t kFindingsRun = 16384;
/// Bytes of what is found in all of them together, and of results that are read with it.
constexpr size_t kFindingsBytes = 152;

/// A graph input on a device: in the memory of a pass's inputs, or of those that updates alone
/// read.
struct DeviceInput {
  size_t offset = 0, bytes = 0;
  bool in_pass = false;  ///< the bands read it
  bool used = false;
};

struct DeviceInputs {
  std::vector<DeviceInput> inputs;  ///< by Plan::inputs
  size_t pass_bytes = 0, update_bytes = 0;
};

DeviceInputs device_inputs(const Plan& plan);
/// Returns the bytes of the numbers that steps need, and of scalars.
size_t device_number_bytes(const Plan& plan);
/// Returns the bytes of what is found in gradients of `bytes`.
size_t device_finding_bytes(size_t bytes);

}  // namespace tutti::plan
