#pragma once
// Imports the weights that --weights names into a network, for verbs that need a trained one.

#include <filesystem>
#include <functional>
#include <string>

#include "tutti/config/config.h"
#include "tutti/plan/plan.h"
#include "tutti/train/network/given_weights.h"

namespace tutti::cli {

/// Returns how such a verb compiles its network: for run.device and its chosen run.threads, with
/// the kernels that the weights' run measured, as far as they fit, so that it neither measures
/// again nor computes other bits.
plan::PlanOptions plan_options_for(const config::RunConfig& config,
                                   const train::FoundWeights& found);

/// If neither run.threads nor OMP_NUM_THREADS sets a number of threads, takes the number of the
/// weights' run, since sums with another number have other last bits; only if this node has the
/// cores for `ranks` of them.
void take_threads(const train::FoundWeights& found, int ranks, config::RunConfig& config);
/// Returns the line about `threads` before results; empty where the run is unknown.
std::string threads_line(const train::FoundWeights& found, int64_t threads);

/// If model.task is automatic, takes the task of the weights' run.
void take_task(const train::FoundWeights& found, config::RunConfig& config);

/// The names a verb was given, for its errors and the command that they end with.
struct GivenNames {
  std::string verb;               ///< "eval"
  std::filesystem::path weights;  ///< the path in --weights
  std::string config;             ///< the configuration's file
};

/// Calls `work`, which takes the weights. If their run had another network or task than the
/// configuration, a ConfigError of `work` is most likely a consequence: then the error begins with
/// both networks, and ends with the command for their run's configuration.
int naming_networks(const GivenNames& given, const train::FoundWeights& found,
                    const config::RunConfig& config, const std::function<int()>& work);

/// Throws ConfigError for weights of another model.
void import_weights(const GivenNames& given, const train::FoundWeights& found,
                    train::Weights& weights);

}  // namespace tutti::cli
