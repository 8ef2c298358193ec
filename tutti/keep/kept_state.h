#pragma once
// KeptState: what a run has across steps, as entries of one list. Checkpoints store what the
// entries save, and a resumed run starts from what they restore: whoever has such state adds an
// entry.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tutti/keep/checkpoint.h"
#include "tutti/keep/named_tensor.h"

namespace tutti::keep {

/// The state at one step, by the place where it is stored.
struct SavedRun {
  std::vector<TensorRef> model;           ///< in the file of weights; rank 0's are written
  std::vector<TensorRef> shared;          ///< in the state file; rank 0's are written
  std::vector<TensorRef> own;             ///< in this rank's file; f32
  std::map<std::string, double> numbers;  ///< metrics of the manifest, the same on all ranks
};

/// The functions are called on all ranks, in the order of the list.
struct KeptState {
  std::string name;
  /// Adds tensors and numbers. The tensors refer to values that stay until the next step.
  std::function<void(SavedRun&)> save;
  /// Restores the state, or begins with a new one if `resumed` is null. Empty: it needs neither.
  std::function<void(const Checkpoint* resumed)> start = {};
};

}  // namespace tutti::keep
