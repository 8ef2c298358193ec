#pragma once
// The weights that --weights names, for verbs that take a trained network.

#include <filesystem>
#include <string>

#include "tutti/train/run_settings.h"
#include "tutti/train/safetensors.h"
#include "tutti/train/weights.h"

namespace tutti {

struct GivenWeights {
  SafetensorsFile file;
  std::string checkpoint{};  ///< empty: the file is of no checkpoint
  int64_t step = 0;
  RunSettings settings{};  ///< of the run that wrote the checkpoint
};

/// Weights from a .safetensors file, a checkpoint or a file of one, or the folder of a run or of
/// its checkpoints: the best one there, else the newest. Logs which. ConfigError, IoError.
GivenWeights weights_at(const std::filesystem::path& path);

/// Throws ConfigError for weights of another model, with the configuration that has theirs and the
/// command of `verb`. `config`: the file that was given.
void import_given(const std::string& verb, const std::filesystem::path& path,
                  const std::string& config, const SafetensorsFile& file, Weights& weights);

}  // namespace tutti
