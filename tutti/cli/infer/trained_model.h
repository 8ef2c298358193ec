#pragma once
// What `tutti generate` and `tutti translate` have alike: weights of a run, its configuration.

#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/flags/flags.h"
#include "tutti/config/config.h"
#include "tutti/train/network/given_weights.h"

namespace tutti {

/// "The folder of a run ...": the argument WEIGHTS of a verb. `example`: a command that has it.
Flag weights_argument(std::string& weights, std::string_view verb, std::string_view example);

/// --config and --threads.
std::vector<Flag> model_flags(std::string& config, int& threads);

/// The configuration of the network: `config` where it is given, else that of the run that the
/// weights lie in. ConfigError where they lie in none, IoError where there are none.
std::string configuration_of(const std::string& weights, const std::string& config);

/// Sets run.threads to `threads`, or where that is 0 to what take_threads() and choose_threads()
/// say.
void set_model_threads(const FoundWeights& found, int threads, RunConfig& config);

}  // namespace tutti
