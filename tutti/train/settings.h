#pragma once
// What a configuration means for each part of the system.

#include "tutti/data/augment.h"
#include "tutti/models/model.h"
#include "tutti/parallel/exchange.h"
#include "tutti/train/config.h"
#include "tutti/train/network.h"
#include "tutti/train/optimizer.h"
#include "tutti/train/schedule.h"

namespace tutti {

ModelSpec model_spec(const RunConfig& config, const data::Dataset& dataset, int64_t batch);
/// Everything but the choices. batch: samples of a replica.
NetworkSpec network_spec(const RunConfig& config, const data::Dataset& dataset, int64_t batch);
/// Everything but the compression, which depends on the network's buckets.
ExchangeSettings exchange_settings(const CommSection& comm);
OptimizerSettings optimizer_settings(const OptimizerSection& optimizer);
/// The schedule spans run.epochs; run.max_steps cuts a run short without changing it, unless
/// run.epochs is 0.
LearningRateSettings learning_rate_settings(const RunConfig& config, int64_t steps_per_epoch,
                                            int64_t global_batch);
data::AugmentSpec augment_spec(const RunConfig& config, const data::ChannelStatistics& own);

/// Weight updates of the whole run: run.epochs, cut off at run.max_steps.
int64_t total_steps(const RunSection& run, int64_t steps_per_epoch);

/// What ends a run there, and how its command goes on beyond `step`.
struct RunLimit {
  std::string text;   ///< "run.max_steps = 20 ends"
  std::string flags;  ///< " --max-steps N   (N above 20)"
};
RunLimit run_limit(const RunSection& run, int64_t steps_per_epoch, int64_t step);

}  // namespace tutti
