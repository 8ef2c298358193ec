#pragma once
// TrainingStep: one step of this rank's replicas as a value: forward, backward, exchange, update.
// The trainer, the benchmarks and the tests take the same one.
//
//   TrainingStep step(...);  fill step.weights();  step.start();
//   for each step: begin(); run() for each local micro-batch; update()
//
// A micro-batch is one batch of one replica, with a gradient of its own. A replica has `accumulate`
// of them in a step, one after another; their gradients are added in the tree that adds those of
// replicas. Which micro-batches are added up, of which weights they are taken and when the sum is
// applied, the caller says: every step sums those of all replicas, and train/rounds/rounds.h has
// the other ways in which replicas meet. Where several ranks share a replica's layers
// (parallel.pipeline), a rank takes the passes of its stage (train/step/passes.h).

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "tutti/comm/communicator.h"
#include "tutti/exchange/replicas.h"
#include "tutti/plan/executor.h"
#include "tutti/sync/delay_compensation.h"
#include "tutti/train/network/network.h"
#include "tutti/train/network/slice_ranks.h"
#include "tutti/train/network/weights.h"
#include "tutti/train/step/passes.h"
#include "tutti/train/step/run_clock.h"
#include "tutti/train/step/step_exchange.h"
#include "tutti/train/step/table_turns.h"

namespace tutti {

/// Whose gradients are added up to one that is applied. Default: those of all replicas.
struct SummedGradients {
  int replicas = 0;  ///< of so many; 0: of all
  int ranks = 0;    ///< by so many neighbouring ranks; 0: by all that have the same part of a model
  int mean_of = 0;  ///< replicas of which an update takes the mean; 0: all
};

struct TrainingStepSpec {
  NetworkSpec network;
  ExchangeSettings exchange;  ///< network.training.optimizer.sharded is set to what it says
  ReplicaMap map;      ///< of replicas to groups of ranks; a rank is a group where none share one
  PartGrid grid = {};  ///< the groups; network.training.split.grid is set to it
  int accumulate = 1;  ///< micro-batches of a replica in each step
  PipelineOrder order = PipelineOrder::one_f_one_b;  ///< of them, where the grid has stages
  SummedGradients summed = {};
  bool apart = false;        ///< replicas have weights of their own; then exchange.sharded is false
  std::string spill{};       ///< folder for what they have of their own; empty: memory
  bool to_servers = false;   ///< sums leave for servers, which compress them (sync/server_link.h)
  uint64_t seed = 0;         ///< of dropout and of initial weights
  NoiseSettings noise = {};  ///< of the gradient; only where all replicas' gradients are added up,
                             ///< not compressed, and no ranks share samples
  int steps_compared = 256;  ///< of the steps between two looks at arrivals, how many are kept
};

/// Of so many updates, before clipping.
struct GradientNorms {
  int64_t count = 0;
  double sum = 0;
  GradientNorms& operator+=(const GradientNorms& more) {
    count += more.count;
    sum += more.sum;
    return *this;
  }
  /// NaN of none.
  double mean() const { return sum / static_cast<double>(count); }
};

/// Which micro-batch of which replica.
struct MicroBatch {
  int place = 0;          ///< among those of this rank whose gradients are added up
  int number = 0;         ///< among all of the job in this step: StepInfo::replica
  int local_replica = 0;  ///< whose statistics it changes, and whose weights it reads
  const std::byte* parameters = nullptr;  ///< an arena of weights that it reads instead
};

/// A gradient that was taken of other weights than it is applied to, and its update.
struct LateGradient {
  int64_t update = 0;  ///< of all updates of the run, from 0
  float rate = 0;
  const std::byte* of = nullptr;  ///< the weights that it was taken of
  float compensation = 0;         ///< lambda of DC-ASGD; 0: none
};

/// How a sum of gradients is applied.
struct WeightUpdate {
  bool settled = false;   ///< waits until it is done, since nobody else computes meanwhile
  bool received = false;  ///< servers have applied it: what comes are weights
  std::optional<LateGradient> late = {};
};

/// The workers are those who each have a loss: replicas, or the ranks that share one. ConfigError
/// where replicas that share ranks have none of their own.
ReplicaMap workers_of(const ReplicaMap& replicas, const PartGrid& grid, int ranks, int rank);

/// The network of a step as rank `rank` of `ranks` has it, with what it holds (HeldCopies).
NetworkSpec network_of_step(const TrainingStepSpec& spec, int ranks, int rank);

/// ConfigError where replicas that train apart would share tables of rows.
void refuse_tables_apart(const Network& network);

/// Not thread-safe; used by the thread that uses the communicator.
class TrainingStep {
 public:
  /// Collective. Compiles the network; weights are new. Backend and communicator must outlive it.
  /// Throws as compile_network does.
  TrainingStep(const TrainingStepSpec& spec, const Backend& backend,
               comm::Communicator& communicator);

  /// Collective, once, after the last change of weights() and exchange() from outside.
  void start();

  /// Begins a step, and its first gradient. `step` counts updates from 0; `learning_rate` is that
  /// of its update.
  void begin(int64_t step, float learning_rate);
  /// Begins another gradient of the same step, after the update of the one before.
  void begin_gradient();
  /// Forward and backward of a micro-batch, in the order of their places; `batch` fills
  /// network().inputs. Its loss, over its batch; of a part, what it adds to that. Sums of complete
  /// buckets leave while it runs.
  float run(const MicroBatch& which, std::span<void* const> batch);
  /// The `local`-th micro-batch of this rank, where every step sums those of all replicas.
  MicroBatch micro_batch(int local) const;
  float run(int local, std::span<void* const> batch) { return run(micro_batch(local), batch); }
  /// All micro-batches of a gradient have been run. Only needed where its sum must leave before
  /// update(), which says so otherwise.
  void end_of_backward();
  /// The first prediction of the last run(), in the plain layout; not where parts share samples.
  const float* prediction();
  /// "the gradient of 'conv1.weight' is not finite ..." for the first such one of this step.
  const std::string& bad_gradient() const { return exchange_.bad_gradient(); }
  /// Applies the sums that have arrived; the others wait for the next run() or settle().
  void update(const WeightUpdate& how = {});
  /// Applies all of them: before anybody reads the weights.
  void settle();
  /// Somebody has changed weights() since the last update().
  void weights_changed() { passes_->note_packed(nullptr); }
  /// Where gradients are clipped: their norms, of the updates that are over, since the last call;
  /// the last update is one of them after the next run() or settle(). The same on all ranks, but
  /// for replicas that are apart: then they are of the local ones.
  GradientNorms take_gradient_norms() { return std::exchange(norms_, {}); }
  /// Seconds of the last step in which this rank computed, and waited for others.
  StepTimes times() const;
  /// Seconds of the last step that each local replica computed: its micro-batches, and the update,
  /// which those that are not apart share.
  std::span<const double> replica_seconds() const { return replica_seconds_; }

  /// What the last run() computed: its step, and its micro-batch among those of the job.
  StepInfo info() const { return info_; }
  /// The same micro-batch.
  const MicroBatch& last() const { return last_; }
  const Network& network() const { return *network_; }
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }
  StepExchange& exchange() { return exchange_; }
  const StepExchange& exchange() const { return exchange_; }
  Executor& executor() { return executor_; }
  const ReplicaMap& map() const { return map_; }
  /// Those who each have a gradient to sum: the replicas, or their parts.
  const ReplicaMap& workers() const { return workers_; }
  /// The micro-batches whose gradients are added up.
  const ReplicaMap& summed() const { return summed_; }
  const PartExchange& parts() const { return *parts_; }
  /// The ranks that make a gradient together.
  comm::Communicator& group() { return group_ ? *group_ : communicator_; }

 private:
  template <class Work>
  double compute(Work work);
  double exposed_seconds() const { return exchange_.exposed_seconds() + parts_->exposed_seconds(); }
  void note_norm();
  float loss() const;

  comm::Communicator& communicator_;
  const int accumulate_;
  const ReplicaMap map_, workers_, summed_;
  const int mean_of_;                          // micro-batches of an update
  std::unique_ptr<comm::Communicator> group_;  // whose gradients are added up; null: all ranks'
  std::unique_ptr<Network> network_;
  StepExchange exchange_;
  Weights weights_;
  Executor executor_;
  std::optional<PartExchange> parts_;
  std::optional<SliceRanks> slices_;  // where ranks share layers
  const float share_;                 // of the loss that this rank has computed
  std::optional<Passes> passes_;
  std::optional<TableTurns> table_turns_;
  StepInfo info_;
  MicroBatch last_;
  std::vector<float> plain_;  // of the prediction, where the plan has another layout
  double computing_ = 0, exposed_before_ = 0;
  std::vector<double> replica_seconds_;
  GradientNorms norms_;
  bool norm_due_ = false;        // of the last update
  bool backward_ended_ = false;  // of this gradient
  float rate_ = 0;               // of this step
};

}  // namespace tutti
