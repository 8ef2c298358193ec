#pragma once
// Builds the whole step as one graph: forward, loss, backward, exchange of gradients, update.

#include <span>
#include <string>
#include <vector>

#include "tutti/exchange/compression_policy.h"
#include "tutti/models/block/model.h"
#include "tutti/split/split.h"
#include "tutti/split/stages.h"
#include "tutti/split/tensors.h"
#include "tutti/train/network/optimizer.h"

namespace tutti::train {

struct TrainingGraphSpec {
  models::ModelSpec model;  ///< mode train
  config::OptimizerSection optimizer{.momentum = 0};
  bool sharded_update = false;           ///< comm.sharded_update (UpdateScope::sharded)
  std::vector<std::string> freeze = {};  ///< patterns: parameters that are not trained
  exchange::CompressionPolicy compression =
      {};                           ///< buckets hold only parameters it compresses, or none
  size_t bucket_bytes = 1 << 20;    ///< wanted size of a gradient bucket; in compile_network(), 0:
                                    ///< measured (exchange/bucket_size.h)
  split::SplitSettings split = {};  ///< threads of a plan, and how samples are cut for them
  bool repeats_cheap_ops = true;    ///< Backend::repeats_cheap_ops(); compile_network() sets it
  bool joins_moves = false;         ///< Backend::joins_moves(), set likewise
  int micro_batches = 1;  ///< micro-batches of the whole job whose gradients an update sums
};

/// Values that the update of tables reads from all micro-batches of the job, [micro-batches * N,
/// ...]: an input of the update, bound by its caller (train/step/table_micro_batches.h).
struct KeptMicroBatches {
  graph::Value input;
  std::vector<graph::Value>
      of_rank;  ///< by rank: the value that one of its micro-batches computes here
};

struct TrainingGraph {
  graph::Graph graph;
  std::vector<models::GraphInput> inputs;  ///< inputs, then targets; on a stage those that it reads
  std::vector<graph::Value> losses;        ///< training minimises their sum; on a stage, its own
  std::vector<graph::Value> predictions;   ///< outputs; invalid where parts share samples
  graph::Value lr, gradient_scale;         ///< scalars: the rate of the step; 1 / replicas
  std::vector<KeptMicroBatches> kept;      ///< if a step has several micro-batches
  bool has_tables = false;                 ///< in the whole model; this rank may have none
  bool shares_tables = false;              ///< with other ranks: all take part in each step
  int64_t parameters = 0, trained = 0;     ///< the whole model's: all, and the trained ones
  graph::TensorSlices slices;              ///< parameters that ranks share
  std::string tensors;                     ///< the shared layers, for the log; empty: none
  graph::Value gradient_norm;              ///< a result of the update, if the gradient is clipped
  split::Stages stages;                    ///< a pipeline's
  std::vector<std::string> elsewhere;      ///< variables that only other stages have
  std::vector<split::SharedParameter> shared;  ///< with other stages, each in a bucket of its own
};

/// Returns the parameters that no pattern of `freeze` matches; where a network has LoRA
/// (models/lora.h), only LoRA's. Throws ConfigError for a pattern that matches no parameter, or if
/// none is left.
std::vector<graph::Value> trained_parameters(const graph::Graph& graph,
                                             std::span<const std::string> freeze);

TrainingGraph make_training_graph(const TrainingGraphSpec& spec);

}  // namespace tutti::train
