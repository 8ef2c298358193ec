#pragma once
// Weights that a path names: for `tutti eval --weights`, and as the first ones of a run.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tutti/comm/communicator.h"
#include "tutti/config/run_settings.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/safetensors.h"
#include "tutti/train/network/weights.h"

namespace tutti {

struct FoundWeights {
  SafetensorsFile file;
  std::string checkpoint{};  ///< empty: the file is of no checkpoint
  int64_t step = 0;
  RunSettings settings{};      ///< of the run that wrote the checkpoint
  std::string plan_choices{};  ///< its kernels (plan/choices.h)
  std::vector<LearnedField>
      learned{};  ///< what it learned; empty: of no checkpoint, or an early one
};

/// Weights from a .safetensors file, a checkpoint or a file of one, or the folder of a run or of
/// its checkpoints: the best one there, else the newest. Errors name `key`, which gave the path.
FoundWeights find_weights(const std::filesystem::path& path, std::string_view key);

/// The configuration of the run that such a path lies in or is; empty: none is near.
/// IoError where there is nothing of that name.
std::string configuration_near(const std::filesystem::path& weights);

/// What model.weights and model.weights_except say.
struct GivenWeights {
  std::string path;
  std::span<const std::string> except;
};

/// Reads them into `weights`. ConfigError for what does not fit, and for a pattern that fits
/// nothing.
void read_given(const GivenWeights& given, Weights& weights);

/// Collective: rank 0 reads them for all.
void give_weights(comm::Communicator& communicator, const GivenWeights& given, Weights& weights);

}  // namespace tutti
