#include "tutti/cli/given_weights.h"

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/shell.h"
#include "tutti/train/checkpoint.h"

namespace tutti {
namespace {

/// The configuration of the run that a path of --weights lies in or is; empty: none is near.
std::string configuration_near(const std::filesystem::path& weights) {
  std::error_code unknown;
  auto at = weights.has_filename() ? weights : weights.parent_path();
  // The run, its checkpoints, one of them, a file in that.
  for (int up = 0; up < 4 && !at.empty(); ++up, at = at.parent_path())
    if (const auto config = at / "config.toml"; std::filesystem::exists(config, unknown))
      return config.string();
  return "";
}

}  // namespace

GivenWeights weights_at(const std::filesystem::path& path) {
  std::error_code failed;  // opening the file says why
  const bool folder = std::filesystem::is_directory(path, failed);
  if (path.filename() == "state.safetensors" &&
      is_in_checkpoint(path.parent_path() / "weights.safetensors"))
    throw ConfigError(fmt::format(
        "--weights: '{}' holds the optimizer's state and the statistics, not the weights; give {}",
        path.string(), shell_word((path.parent_path() / "weights.safetensors").string())));
  if (!folder && !is_in_checkpoint(path)) return {SafetensorsFile(path)};
  const auto best = folder ? find_best(checkpoints_in(path)) : std::nullopt;
  const std::filesystem::path checkpoint = best ? *best : checkpoint_at(path, "--weights");
  const CheckpointInfo info = verify_checkpoint(checkpoint);
  log::info("weights of step {}{}: '{}'", info.step, best ? ", the best evaluation's" : "",
            checkpoint.string());
  return {std::move(open_checkpoint(checkpoint).weights), checkpoint.string(), info.step,
          info.settings};
}

void import_given(const std::string& verb, const std::filesystem::path& path,
                  const std::string& config, const SafetensorsFile& file, Weights& weights) {
  try {
    weights.import_model(file);
  } catch (const ConfigError& error) {
    const std::string own = configuration_near(path);
    if (own.empty() || own == config) throw;
    throw ConfigError(
        fmt::format("{}; the run of these weights had the configuration {}: tutti {} {} --weights "
                    "{}",
                    error.what(), own, verb, shell_word(own), shell_word(path.string())));
  }
}

}  // namespace tutti
