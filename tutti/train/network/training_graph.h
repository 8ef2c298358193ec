#pragma once
// The whole step as one graph: forward, loss, backward, exchange of gradients, update.

#include <span>
#include <string>
#include <vector>

#include "tutti/exchange/compression_policy.h"
#include "tutti/models/block/model.h"
#include "tutti/split/split.h"
#include "tutti/split/stages.h"
#include "tutti/split/tensors.h"
#include "tutti/train/network/optimizer.h"

namespace tutti {

struct TrainingGraphSpec {
  ModelSpec model;  ///< mode train
  OptimizerSettings optimizer;
  std::vector<std::string> freeze = {};  ///< patterns: parameters that are not trained
  CompressionPolicy compression = {};    ///< buckets hold parameters that it compresses, or none
  size_t bucket_bytes = 1 << 20;  ///< wanted size of a bucket of gradients; compile_network: 0
                                  ///< measures (exchange/bucket_size.h)
  SplitSettings split = {};       ///< the threads of a plan, and how samples are cut for them
  int turns = 1;                  ///< of the job in a step: batches whose gradients an update sums
};

/// Values of which the update of tables reads those of all turns of the job, [turns * N, ...]: an
/// input of the update, bound by its caller (train/step/table_turns.h).
struct KeptTurns {
  Value input;
  std::vector<Value> of_rank;  ///< by rank: what a turn of its makes here
};

struct TrainingGraph {
  Graph graph;
  std::vector<GraphInput> inputs;       ///< the network's, then the targets; of a stage those that
                                        ///< it reads
  std::vector<Value> losses;            ///< training minimises their sum; of a stage its own
  std::vector<Value> predictions;       ///< outputs, but where parts share samples: invalid
  Value lr, gradient_scale;             ///< scalars: the rate of the step; 1 / replicas
  std::vector<KeptTurns> kept;          ///< where a step has several turns
  bool has_tables = false;              ///< in the whole model; this rank may have none of them
  bool shares_tables = false;           ///< with other ranks: all go through a step together
  int64_t parameters = 0, trained = 0;  ///< of the whole model, and of them those that are trained
  TensorSlices slices;                  ///< parameters that ranks share
  std::string tensors;                  ///< what ranks share of layers, for the log; empty: nothing
  Value gradient_norm;                  ///< a result of the update, where the gradient is clipped
  Stages stages;                        ///< of a pipeline
  std::vector<std::string> elsewhere;   ///< variables that other stages alone have
  std::vector<SharedParameter> shared;  ///< with other stages, each in a bucket of its own
};

/// Those that no pattern of `freeze` fits; where a network has LoRA (models/lora.h), of LoRA's
/// alone. ConfigError for a pattern that fits no parameter, or
/// where none is left.
std::vector<Value> trained_parameters(const Graph& graph, std::span<const std::string> freeze);

TrainingGraph make_training_graph(const TrainingGraphSpec& spec);

}  // namespace tutti
