#pragma once
// Runs a training graph's plan once on fixed random data and keeps the results, in plain form.

#include <map>
#include <string>
#include <vector>

#include "tutti/plan/run/executor.h"
#include "tutti/train/network/training_graph.h"

namespace tutti::test {

struct PlanRun {
  float loss = 0;
  std::map<std::string, std::vector<float>> gradients, parameters,
      statistics;  ///< after one update
};

train::TrainingGraph small_residual_net(DType activations, int64_t batch);
/// Returns a residual network in f32 whose activations are GELUs: it compares nothing, so its
/// gradients change only by rounding, on any processor (rectifiers.h).
train::TrainingGraph small_smooth_net(int64_t batch);

/// Runs one step: pack, forward and backward, update.
PlanRun run_once(const train::TrainingGraph& training, const backend::Backend& backend,
                 const plan::PlanOptions& options);

}  // namespace tutti::test
