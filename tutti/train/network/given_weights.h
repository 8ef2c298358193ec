#pragma once
// Reads weights that a path names: for `tutti eval --weights`, and as a run's first weights.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tutti/comm/communicator.h"
#include "tutti/config/run_settings.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/safetensors.h"
#include "tutti/train/network/weights.h"

namespace tutti::train {

struct FoundWeights {
  keep::SafetensorsFile file;
  std::string checkpoint{};  ///< empty: the file belongs to no checkpoint
  int64_t step = 0;
  config::RunSettings settings{};  ///< settings of the run that wrote the checkpoint
  std::string plan_choices{};      ///< the checkpoint's kernels (plan/choices.h)
  std::vector<keep::LearnedField>
      learned{};  ///< fields it learned; empty: no checkpoint, or an early one
};

/// Finds weights in a .safetensors file, a checkpoint or one of its files, or the folder of a run
/// or of its checkpoints: there the best checkpoint, else the newest. Errors name `key`, which gave
/// the path.
FoundWeights find_weights(const std::filesystem::path& path, std::string_view key);

/// Returns the configuration of the run to which such a path belongs; empty: there is none nearby.
/// Throws IoError if nothing has that name.
std::string configuration_near(const std::filesystem::path& weights);

/// The values of model.weights and model.weights_except.
struct GivenWeights {
  std::string path;
  std::span<const std::string> except;
};

/// Reads them into `weights`. Throws ConfigError for tensors that do not fit, and for a pattern
/// that matches nothing.
void read_given(const GivenWeights& given, Weights& weights);

/// Collective. Rank 0 reads them for all.
void give_weights(comm::Communicator& communicator, const GivenWeights& given, Weights& weights);

}  // namespace tutti::train
