#include "tutti/cli/infer/trained_model.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/cli/infer/import_weights.h"
#include "tutti/cli/job/launch.h"

namespace tutti::cli {

Flag weights_argument(std::string& weights, std::string_view verb, std::string_view example) {
  return {.names = "WEIGHTS",
          .help =
              "The folder of a run or of its checkpoints: then the best one, else the newest "
              "valid one; a checkpoint or a .safetensors file",
          .bind = &weights,
          .kind = Names::file,
          .required = fmt::format("{} needs weights, for example: {}", verb, example)};
}

std::vector<Flag> model_flags(std::string& config, int& threads) {
  return {{.names = "--config",
           .value = "FILE",
           .help = "The network's configuration. Empty: that of the run that the weights lie in",
           .bind = &config,
           .kind = Names::file},
          {.names = "--threads",
           .value = "N",
           .help = "Threads. 0: as many as the run of the weights had in a rank",
           .bind = &threads,
           .least = 0}};
}

std::string configuration_of(const std::string& weights, const std::string& config) {
  const std::string near = config.empty() ? train::configuration_near(weights) : config;
  if (near.empty())
    throw ConfigError(fmt::format(
        "{} lies in no run's folder: name the configuration of its network with --config",
        weights));
  return near;
}

void set_model_threads(const train::FoundWeights& found, int threads, config::RunConfig& config) {
  config.run.threads = threads;
  take_threads(found, 1, config);
  config.run.threads =
      choose_threads(static_cast<int>(config.run.threads), read_surroundings().omp_num_threads,
                     device::read_topology(), 1);
}

}  // namespace tutti::cli
