#pragma once
// The weights that --weights names, into a network, for verbs that take a trained one.

#include <filesystem>
#include <string>

#include "tutti/plan/plan.h"
#include "tutti/train/config.h"
#include "tutti/train/given_weights.h"

namespace tutti {

/// How such a verb compiles its network: with the kernels that the run of the weights has measured,
/// as far as they fit, so that it neither measures anew nor computes other bits.
PlanOptions plan_options_for(const RunConfig& config, const FoundWeights& found);

/// Where model.task leaves open what is learned: as the run of the weights had it.
void take_task(const FoundWeights& found, RunConfig& config);

/// Throws ConfigError for weights of another model, with the configuration that has theirs and the
/// command of `verb`. `config`: the file that was given.
void import_weights(const std::string& verb, const std::filesystem::path& path,
                    const std::string& config, const SafetensorsFile& file, Weights& weights);

}  // namespace tutti
