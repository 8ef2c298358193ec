#pragma once
// Small forms of the networks whose training on a device is compared with that on the CPU: each has
// all kinds of layers of the published one, and its optimizer.

#include <string>
#include <vector>

#include "tutti/plan/plan.h"
#include "tutti/train/network/training_graph.h"

namespace tutti::test {

/// The elements of a tensor in plain order.
using Numbers = std::vector<double>;

struct SmallNetwork {
  train::TrainingGraph training;
  double rate = 0;  ///< learning rate
};

/// Makes "resnet44", "cosmoflow" (volumes of 32^3), "deepcam" or "ffn". Throws ConfigError for
/// another name.
SmallNetwork small_network(const std::string& name, DType activations);

/// Returns random inputs and targets, one tensor for each of TrainingGraph::inputs, of types and
/// values that the network takes. There are sixteen batches, which `step` takes in turn, so that
/// the loss falls.
std::vector<Numbers> batch_of(const train::TrainingGraph& training, int64_t step);

}  // namespace tutti::test
