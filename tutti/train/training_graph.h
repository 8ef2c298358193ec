#pragma once
// The whole step as one graph: forward, loss, backward, exchange of gradients, update.

#include <span>
#include <string>
#include <vector>

#include "tutti/models/model.h"
#include "tutti/parallel/compression_policy.h"
#include "tutti/parallel/split/split.h"
#include "tutti/train/optimizer.h"

namespace tutti {

struct TrainingGraphSpec {
  ModelSpec model;  ///< mode train
  OptimizerSettings optimizer;
  std::vector<std::string> freeze = {};  ///< patterns: parameters that are not trained
  CompressionPolicy compression = {};    ///< buckets hold parameters that it compresses, or none
  size_t bucket_bytes = 1 << 20;  ///< wanted size of a bucket of gradients; compile_network: 0
                                  ///< measures (parallel/bucket_size.h)
  SplitSettings split = {};       ///< the threads of a plan, and how samples are cut for them
};

struct TrainingGraph {
  Graph graph;
  std::vector<GraphInput> inputs;  ///< the network's, then the targets
  std::vector<Value> losses;       ///< training minimises their sum
  std::vector<Value> predictions;  ///< outputs, but where parts share samples: invalid
  Value lr, gradient_scale;        ///< scalars: the rate of the step; 1 / replicas
  std::vector<Value> tables;       ///< that are trained (ops/embedding.h)
  Value gradient_norm;             ///< a result of the update, where the gradient is clipped
};

/// Those that no pattern of `freeze` fits. ConfigError for a pattern that fits no parameter, or
/// where none is left.
std::vector<Value> trained_parameters(const Graph& graph, std::span<const std::string> freeze);

TrainingGraph make_training_graph(const TrainingGraphSpec& spec);

}  // namespace tutti
