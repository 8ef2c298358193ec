#pragma once
// The weights that verbs are given, and for `tutti generate` and `tutti translate` their
// configuration.

#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/flags.h"
#include "tutti/config/config.h"
#include "tutti/train/network/given_weights.h"

namespace tutti::cli {

/// Returns "The folder of a run ...": the argument WEIGHTS of a verb. `example`: a command that has
/// it.
Flag weights_argument(std::string& weights, std::string_view verb, std::string_view example);

/// Returns the flag --weights of a verb that takes a configuration, too.
Flag weights_flag(std::string& weights, std::string_view verb);

/// The flags that say how a verb with WEIGHTS computes.
struct ModelRun {
  std::string config;  ///< file; empty: that of the run of the weights
  int threads = 0;
  DeviceFlags device;
};

/// Returns --config, --threads, --device and --gpu.
std::vector<Flag> model_flags(ModelRun& run);

/// Returns the configuration of the network: `config` if given, else the configuration of the run
/// that the weights lie in. Throws ConfigError where they lie in no run, IoError where there are no
/// weights.
std::string configuration_of(const std::string& weights, const std::string& config);

/// Sets run.threads to `threads`, or if that is 0 as take_threads() and choose_threads() do.
/// Without a GPU a network that was trained in tf32 computes in fp32, which has the same weights.
void set_model_compute(const train::FoundWeights& found, int threads, config::RunConfig& config);

}  // namespace tutti::cli
