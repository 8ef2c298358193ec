#include "tutti/cli/infer/trained_model.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/infer/import_weights.h"
#include "tutti/cli/job/launch.h"

namespace tutti::cli {

Flag weights_argument(std::string& weights, std::string_view verb, std::string_view example) {
  return required_flag(
      Names::file, "WEIGHTS", {},
      "The folder of a run or of its checkpoints: then the best one, else the newest valid one; a "
      "checkpoint or a .safetensors file",
      &weights, fmt::format("{} needs weights, for example: {}", verb, example));
}

Flag weights_flag(std::string& weights, std::string_view verb) {
  return required_flag(
      Names::file, "--weights", "PATH",
      "A .safetensors file, a checkpoint, or the folder of a run or of its checkpoints: then the "
      "best one, else the newest valid one",
      &weights, fmt::format("{} needs weights, for example: --weights runs/mine", verb));
}

std::vector<Flag> model_flags(ModelRun& run) {
  return joined(
      {named_flag(Names::file, "--config", "FILE",
                  "The network's configuration. Empty: that of the run that the weights lie in",
                  &run.config),
       flag("--threads", "N", "Threads. 0: as many as the run of the weights had in a rank",
            &run.threads, {0})},
      run.device.flags());
}

std::string configuration_of(const std::string& weights, const std::string& config) {
  const std::string near = config.empty() ? train::configuration_near(weights) : config;
  if (near.empty())
    throw ConfigError(fmt::format(
        "{} lies in no run's folder: name the configuration of its network with --config",
        weights));
  return near;
}

void set_model_compute(const train::FoundWeights& found, int threads, config::RunConfig& config) {
  config.run.threads = threads;
  take_threads(found, 1, config);
  config.run.threads =
      choose_threads(static_cast<int>(config.run.threads), read_surroundings().omp_num_threads,
                     device::read_topology(), 1);
  if (config.run.precision == config::Precision::tf32 &&
      config.run.device != config::DeviceKind::cuda)
    config.run.precision = config::Precision::fp32;
}

}  // namespace tutti::cli
