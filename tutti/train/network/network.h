#pragma once
// Network: a model compiled for this rank, for training and for evaluation, over one set of
// variables.

#include <filesystem>
#include <memory>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/exchange/exchange.h"
#include "tutti/exchange/replicas.h"
#include "tutti/plan/plan.h"
#include "tutti/train/network/training_graph.h"

namespace tutti {

/// Of what a rank trains with, how many it holds at a time.
struct HeldCopies {
  PipelineOrder order = PipelineOrder::one_f_one_b;
  int batches = 1;  ///< of a step (batch.accumulate): where there are stages, several are under way
  int gradients = 1;  ///< arenas
  int sums = 0;       ///< arenas of their sums over ranks
  int shown = 0;      ///< arenas of weights that stand for others in evaluations
  int replicas = 1;   ///< with weights of their own
};

struct NetworkSpec {
  TrainingGraphSpec training;
  std::string layout = "auto";
  bool measure = true;  ///< choose kernels and layouts by measurement
  double most_error = PlanOptions{}.most_error;
  Choices choices;                    ///< of a checkpoint, or empty
  std::filesystem::path tuning_file;  ///< where rank 0 keeps measurements between runs (unused with
                                      ///< `choices`); empty: nowhere
  int64_t evaluation_batch = 0;       ///< 0: the training batch
  bool warns = true;                  ///< rank 0 names steps that are slow
  size_t memory = 0;                  ///< bytes that a rank may hold (planned_memory.h); 0: any
  HeldCopies held = {};
};

/// The loss of a model with losses of its own at one sample: forward with running statistics and
/// losses, whole samples, over the variables of the evaluation beside it.
struct OwnLosses {
  Plan plan;
  std::vector<GraphInput> inputs;  ///< and targets
  std::vector<Value> losses;

  std::vector<data::BatchField> batch() const;
};

/// Forward alone, with running statistics.
struct EvaluationNetwork {
  Plan plan;
  std::vector<GraphInput> inputs;
  std::vector<std::optional<data::BatchRows>> rows;  ///< of each that this rank's part reads
  std::vector<Value> predictions;  ///< of whole samples; behind them what the model reads out; of
                                   ///< stages the last one alone has any
  std::vector<std::string> names;  ///< of each prediction; of the only one with a target empty
  std::vector<data::BatchField> targets;  ///< what predictions are compared with, on the host
  std::vector<size_t> target_of;          ///< of each prediction that has one, in `targets`
  std::vector<bool> of_data;   ///< of these: whether they are in its units (train/settings/units.h)
  PartGrid grid;               ///< who share samples, or have stages
  bool shares_tables = false;  ///< all ranks run it together, each as often as the others
  /// Null where no objective has losses of its own, or ranks share layers, stages or tables.
  std::unique_ptr<OwnLosses> own_losses;

  /// The tensors of a batch: inputs, then targets.
  std::vector<data::BatchField> batch() const;
};

struct Network {
  Plan training;
  std::vector<GraphInput> inputs;  ///< of `training`: the network's, then the targets
  std::vector<std::optional<data::BatchRows>> rows;  ///< of each that this rank's part reads
  std::vector<Value> losses;                         ///< of `training`, which minimises their sum
  std::vector<Value> predictions;  ///< of `training`; invalid where parts share samples
  Value lr, gradient_scale;        ///< of `training`
  std::vector<KeptTurns> kept;     ///< of `training`
  bool has_tables = false;         ///< in the whole model; `training` may have none of them
  bool shares_tables = false;      ///< with other ranks
  int64_t parameters = 0, trained_parameters = 0;  ///< of the whole model; and those trained
  Value gradient_norm;  ///< of `training`, where it clips; invalid otherwise
  EvaluationNetwork evaluation;
  BucketLayout buckets;                 ///< the plan's buckets as the exchange wants them
  std::vector<SharedParameter> shared;  ///< with other stages, each alone in a bucket
  ExchangeCompression compression;      ///< and how they are compressed

  /// The tensors of a training batch, in the order of `inputs`.
  std::vector<data::BatchField> batch() const;
};

/// Workers and servers have buckets of one size without asking each other: the size that is
/// measured (compile_network) is of sums.
NetworkSpec with_served_buckets(NetworkSpec network);

/// Collective. Rank 0 compiles first and measures; the others take its choices. Throws CommError
/// naming the ranks whose plan differs from rank 0's, ConfigError where a rank cannot do with
/// `memory`, which the evaluation's results are part of.
std::unique_ptr<Network> compile_network(const NetworkSpec& spec, const Backend& backend,
                                         comm::Communicator& communicator);

/// Collective. The evaluation side alone, for `tutti eval`: no gradients, no optimizer. Rank 0
/// chooses layout and kernels for all. Of `options` the layout, whether to measure, and known
/// choices count.
std::unique_ptr<EvaluationNetwork> compile_evaluation(const ModelSpec& model,
                                                      const SplitSettings& split,
                                                      const Backend& backend,
                                                      comm::Communicator& communicator,
                                                      PlanOptions options = {});

}  // namespace tutti
