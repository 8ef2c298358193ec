#pragma once
// Network: a model compiled for this rank, for training and for evaluation, over one set of
// variables.

#include <filesystem>
#include <memory>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/config/plan_section.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/exchange/exchange.h"
#include "tutti/exchange/replicas.h"
#include "tutti/plan/plan.h"
#include "tutti/train/network/training_graph.h"

namespace tutti::train {

/// The number of copies of each kind that a training rank holds at a time.
struct HeldCopies {
  split::PipelineOrder order = split::PipelineOrder::one_f_one_b;
  int batches = 1;     ///< per step (batch.accumulate); with stages, several are in flight
  int gradients = 1;   ///< gradient arenas
  int sums = 0;        ///< arenas of their sums over ranks
  int shown = 0;       ///< arenas of weights that represent the run in evaluations
  int replicas = 1;    ///< replicas with weights of their own
  int statistics = 0;  ///< on a device: more arenas of statistics
  int met = 0;         ///< copies of the weights with which these, or servers, meet
};

struct NetworkSpec {
  TrainingGraphSpec training;
  config::PlanSection plan;  ///< layout, measurement, kernels' error, bytes that a rank may hold
  plan::Choices choices;     ///< from a checkpoint, or empty
  std::filesystem::path tuning_file;  ///< stores rank 0's measurements between runs (unused with
                                      ///< `choices`); empty: nowhere
  int64_t evaluation_batch = 0;       ///< 0: the training batch
  bool warns = true;                  ///< rank 0 reports slow steps
  size_t copied_bytes = 0;            ///< for copies of which a checkpoint is written; 0: what
                                      ///< plan.memory leaves
  HeldCopies held = {};
};

/// The loss, at one sample, of a model that defines its own losses: forward with running statistics
/// and losses, whole samples, over the variables of the evaluation beside it.
struct OwnLosses {
  plan::Plan plan;
  std::vector<models::GraphInput> inputs;  ///< and targets
  std::vector<graph::Value> losses;

  std::vector<data::BatchField> batch() const;
};

/// Only the forward pass, with running statistics.
struct EvaluationNetwork {
  plan::Plan plan;
  std::vector<models::GraphInput> inputs;
  std::vector<std::optional<data::BatchRows>> rows;  ///< rows that this rank's part reads, by input
  std::vector<graph::Value> predictions;  ///< for whole samples; after them the model's readings;
                                          ///< with stages, only the last one has any
  std::vector<std::string> names;         ///< by prediction; empty for a single one with a target
  std::vector<data::BatchField> targets;  ///< compared with predictions, on the host
  std::vector<size_t> target_of;          ///< index in `targets` for each prediction that has one
  std::vector<bool> of_data;              ///< for each of these: whether it is in the data's units
                                          ///< (train/settings/units.h)
  split::PartGrid grid;                   ///< ranks that share samples, or have stages
  bool shares_tables = false;             ///< all ranks run it together, and equally often
  /// Null if no objective has losses of its own, or if ranks share layers, stages or tables.
  std::unique_ptr<OwnLosses> own_losses;

  /// Returns the tensors of a batch: inputs, then targets.
  std::vector<data::BatchField> batch() const;
};

struct Network {
  plan::Plan training;
  std::vector<models::GraphInput> inputs;  ///< for `training`: the network's, then the targets
  std::vector<std::optional<data::BatchRows>> rows;  ///< rows that this rank's part reads, by input
  std::vector<graph::Value> losses;                  ///< in `training`, which minimises their sum
  std::vector<graph::Value> predictions;  ///< in `training`; invalid where parts share samples
  graph::Value lr, gradient_scale;        ///< in `training`
  std::vector<KeptMicroBatches> kept;     ///< in `training`
  bool has_tables = false;                ///< in the whole model; `training` may contain none
  bool shares_tables = false;             ///< with other ranks
  int64_t parameters = 0, trained_parameters = 0;  ///< whole model's: all, the trained
  graph::Value gradient_norm;  ///< in `training`, if it clips; invalid otherwise
  EvaluationNetwork evaluation;
  exchange::BucketLayout buckets;              ///< the plan's buckets in the exchange's form
  std::vector<split::SharedParameter> shared;  ///< shared with other stages, each alone in a bucket
  exchange::ExchangeCompression compression;   ///< compression of the buckets

  /// Returns the tensors of a training batch, in the order of `inputs`.
  std::vector<data::BatchField> batch() const;
};

/// Fixes the size of buckets, so that workers and servers agree on it without communication: the
/// size that compile_network() measures is for sums.
NetworkSpec with_served_buckets(NetworkSpec network);

/// Collective. Rank 0 compiles first and measures; the others use its choices. Throws CommError
/// naming the ranks whose plan differs from rank 0's, and ConfigError if a rank needs more than
/// `memory`, which includes the evaluation's results.
std::unique_ptr<Network> compile_network(const NetworkSpec& spec, const backend::Backend& backend,
                                         comm::Communicator& communicator);

/// Collective. Compiles only the evaluation side, for `tutti eval`: no gradients, no optimizer.
/// Rank 0 chooses layout and kernels for all. Only the layout, measurement and known choices in
/// `options` are used.
std::unique_ptr<EvaluationNetwork> compile_evaluation(const models::ModelSpec& model,
                                                      const split::SplitSettings& split,
                                                      const backend::Backend& backend,
                                                      comm::Communicator& communicator,
                                                      plan::PlanOptions options = {});

}  // namespace tutti::train
