#pragma once
// The weights that --weights names, into a network, for verbs that take a trained one.

#include <filesystem>
#include <functional>
#include <string>

#include "tutti/config/config.h"
#include "tutti/plan/plan.h"
#include "tutti/train/network/given_weights.h"

namespace tutti {

/// How such a verb compiles its network: with the kernels that the run of the weights has measured,
/// as far as they fit, so that it neither measures anew nor computes other bits.
PlanOptions plan_options_for(const RunConfig& config, const FoundWeights& found);

/// Where nobody asks for a number of threads, neither run.threads nor OMP_NUM_THREADS, that of the
/// run of the weights, since the sums of another number have other last bits; as long as this node
/// has the cores for `ranks` of them.
void take_threads(const FoundWeights& found, int ranks, RunConfig& config);
/// The line about `threads` before results; empty where nothing is known of the run.
std::string threads_line(const FoundWeights& found, int64_t threads);

/// Where model.task leaves open what is learned: as the run of the weights had it.
void take_task(const FoundWeights& found, RunConfig& config);

/// What a verb was given, for its errors and the command that they end with.
struct GivenNames {
  std::string verb;               ///< "eval"
  std::filesystem::path weights;  ///< of --weights
  std::string config;             ///< the configuration's file
};

/// Calls `work`, which takes the weights. Where their run had another network or task than the
/// configuration, a ConfigError of `work` is most likely a consequence of that: then it begins with
/// both, and ends with the command for the configuration that has theirs.
int naming_networks(const GivenNames& given, const FoundWeights& found, const RunConfig& config,
                    const std::function<int()>& work);

/// Throws ConfigError for weights of another model.
void import_weights(const GivenNames& given, const FoundWeights& found, Weights& weights);

}  // namespace tutti
