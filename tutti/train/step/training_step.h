#pragma once
// TrainingStep: one step of this rank's replicas as an object: forward, backward, exchange, update.
// The trainer, the benchmarks and the tests all use it.
//
//   TrainingStep step(...);  fill step.weights();  step.start();
//   for each step: begin(); run() for each local micro-batch; update()
//
// A micro-batch is one batch of one replica, with a gradient of its own. A replica has
// `accumulate` of them in a step, one after another; their gradients are added in the same tree as
// those of replicas. The caller decides which micro-batches are summed, with which weights they are
// computed and when the sum is applied: the default sums all replicas' in every step, and
// train/rounds/rounds.h has the other ways in which replicas meet. If several ranks share a
// replica's layers (parallel.pipeline), a rank runs the passes of its stage (train/step/passes.h).

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "tutti/comm/communicator.h"
#include "tutti/exchange/replicas.h"
#include "tutti/plan/run/executor.h"
#include "tutti/sync/delay_compensation.h"
#include "tutti/train/network/network.h"
#include "tutti/train/network/slice_ranks.h"
#include "tutti/train/network/weights.h"
#include "tutti/train/step/passes.h"
#include "tutti/train/step/run_clock.h"
#include "tutti/train/step/step_exchange.h"
#include "tutti/train/step/table_micro_batches.h"

namespace tutti::train {

/// Selects the gradients that are summed into one that is applied. Default: all replicas'
/// gradients.
struct SummedGradients {
  int replicas = 0;  ///< number of replicas; 0: all
  int ranks = 0;     ///< number of neighbouring ranks; 0: all that have the same part of a model
  int mean_of = 0;   ///< replicas over which an update takes the mean; 0: all
};

struct TrainingStepSpec {
  NetworkSpec network = {};
  /// Its `sharded` replaces network.training.sharded_update.
  exchange::ExchangeSettings exchange = {};
  exchange::ReplicaMap map;   ///< replicas to groups of ranks; one rank is a group if none share
  split::PartGrid grid = {};  ///< the groups; replaces network.training.split.grid
  int accumulate = 1;         ///< micro-batches per replica and step
  split::PipelineOrder order =
      split::PipelineOrder::one_f_one_b;  ///< their order, if the grid has stages
  SummedGradients summed = {};
  int met = 0;               ///< HeldCopies::met
  bool apart = false;        ///< replicas have weights of their own; then exchange.sharded is false
  std::string spill{};       ///< folder for replicas' own values; empty: memory
  bool to_servers = false;   ///< sums leave for servers, which compress them (sync/server_link.h)
  uint64_t seed = 0;         ///< for dropout and initial weights
  NoiseSettings noise = {};  ///< the gradient's; only if all replicas' gradients are summed,
                             ///< uncompressed, and no ranks share samples
  int steps_compared = 256;  ///< steps kept for each reading of arrivals
};

/// Sums norms over `count` updates, before clipping.
struct GradientNorms {
  int64_t count = 0;
  double sum = 0;
  /// The number of updates that the run had made with the last one of them, or, if the sum is not
  /// finite, with the first that is not; 0: it is the run's last update.
  int64_t last = 0;
  GradientNorms& operator+=(const GradientNorms& more) {
    count += more.count;
    sum += more.sum;
    return *this;
  }
  /// Returns NaN if there are none.
  double mean() const { return sum / static_cast<double>(count); }
};

/// Identifies a micro-batch and its replica.
struct MicroBatch {
  int place = 0;          ///< index among this rank's micro-batches that are summed
  int number = 0;         ///< index among all of the job in this step: StepInfo::replica
  int local_replica = 0;  ///< the replica whose weights it reads and statistics it updates
  const std::byte* parameters = nullptr;  ///< an arena of weights that it reads instead
};

/// A gradient computed with weights other than those it is applied to, and its update.
struct LateGradient {
  int64_t update = 0;  ///< number among all updates of the run, from 0
  float rate = 0;
  const std::byte* of = nullptr;  ///< the weights it was computed with
  float compensation = 0;         ///< lambda of DC-ASGD; 0: none
};

/// The end of a micro-batch: its results.
struct MicroBatchEnd {
  MicroBatch which;
  int64_t step = 0;
  float loss = 0;                ///< as run() returns it
  std::string bad_gradient{};    ///< as TrainingStep::bad_gradient(), for this one
  std::vector<void*> tensors{};  ///< its batch, valid until the next run
};

/// How a sum of gradients is applied.
struct WeightUpdate {
  bool settled = false;   ///< waits until it is done, because no other rank computes meanwhile
  bool received = false;  ///< servers have applied the sum: weights are received
  std::optional<LateGradient> late = {};
};

/// Returns the workers: the replicas, or, where ranks share a replica, those ranks. Each has its
/// own loss. Throws ConfigError if replicas that share ranks do not have ranks of their own.
exchange::ReplicaMap workers_of(const exchange::ReplicaMap& replicas, const split::PartGrid& grid,
                                int ranks, int rank);

/// Returns a step's network for rank `rank` of `ranks`, with its number of copies (HeldCopies).
NetworkSpec network_of_step(const TrainingStepSpec& spec, int ranks, int rank);

/// Throws ConfigError if replicas that train apart would share tables of rows.
void refuse_tables_apart(const Network& network);

/// Not thread-safe; used by the thread that uses the communicator.
class TrainingStep {
 public:
  /// Collective. Compiles the network and initialises new weights. Backend and communicator must
  /// outlive this object. Throws the errors of compile_network().
  TrainingStep(const TrainingStepSpec& spec, const backend::Backend& backend,
               comm::Communicator& communicator);

  /// Collective, once, after the caller's last change of weights() and exchange().
  void start();

  /// Begins a step, and its first gradient. `step` counts updates from 0; `learning_rate` is for
  /// its update.
  void begin(int64_t step, float learning_rate);
  /// Begins another gradient of the same step, after the previous one's update.
  void begin_gradient();
  /// Runs forward and backward of a micro-batch, in the order of their places; `batch` fills
  /// network().inputs. Returns its loss, over its batch; for a part, its contribution. Sums of
  /// complete buckets start meanwhile.
  float run(const MicroBatch& which, std::span<void* const> batch);
  /// Returns the `local`-th micro-batch of this rank, if every step sums all replicas' gradients.
  MicroBatch micro_batch(int local) const;
  float run(int local, std::span<void* const> batch) { return run(micro_batch(local), batch); }
  /// Whether the executor runs ahead of the host (plan::Executor): begin_run() is then better than
  /// run(), which waits.
  bool runs_ahead() const { return ahead_; }
  /// Begins the same without waiting for what it leaves, which next_end() returns. Only if it runs
  /// ahead, and after next_end(Until::room) has returned nothing.
  void begin_run(const MicroBatch& which, std::span<void* const> batch);
  /// Returns what the oldest micro-batch has left of those for which begin_run() was called;
  /// nothing: there is none, or it is not over.
  std::optional<MicroBatchEnd> next_end(plan::Until until);
  /// Announces that all micro-batches of a gradient have been run. Only needed if its sum must be
  /// sent before update(), which otherwise does this.
  void end_of_backward();
  /// Returns the first prediction of the last run(), in the plain layout; not if parts share
  /// samples.
  const float* prediction();
  /// Returns "the gradient of 'conv1.weight' is not finite ..." for the step's first such gradient.
  const std::string& bad_gradient() const {
    return ahead_ && exchange_.bad_gradient().empty() ? bad_gradient_ : exchange_.bad_gradient();
  }
  /// Applies the sums that have arrived; the others are applied in the next run() or
  /// finish_update().
  void update(const WeightUpdate& how = {});
  /// Applies all sums.
  void finish_update();
  /// Does the same; call it before weights, tables, statistics or state are read or changed, or,
  /// with Kept::statistics, before statistics are.
  void settle(plan::Kept what = plan::Kept::all);
  /// Collective. Adds the optimizer's state, which rank 0 has whole afterwards, and the one of
  /// compression (KeptState::save).
  void save_state(keep::SavedRun& saved);
  /// Reports that the caller has changed weights() since settle().
  void weights_changed() { passes_->note_packed(nullptr); }
  /// Returns, if gradients are clipped, their norms in finished updates since the last call; the
  /// last update is included after the next run() or finish_update(). The same on all ranks, except
  /// for replicas that are apart, where it covers the local ones.
  GradientNorms take_gradient_norms() { return std::exchange(norms_, {}); }
  /// Returns the seconds of the last step in which this rank computed or waited for others.
  StepTimes times() const;
  /// Returns the seconds of the last step that each local replica computed: its micro-batches, and
  /// the update, which replicas share unless they are apart.
  std::span<const double> replica_seconds() const { return replica_seconds_; }

  /// Returns the step of the last run(), and its micro-batch's number in the job.
  backend::StepInfo info() const { return info_; }
  /// Returns that micro-batch.
  const MicroBatch& last() const { return last_; }
  const Network& network() const { return *network_; }
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }
  StepExchange& exchange() { return exchange_; }
  const StepExchange& exchange() const { return exchange_; }
  plan::Executor& executor() { return *executor_; }
  const exchange::ReplicaMap& map() const { return map_; }
  /// Returns the map of workers, each with a gradient to sum: the replicas, or their parts.
  const exchange::ReplicaMap& workers() const { return workers_; }
  /// Returns the map of the micro-batches whose gradients are summed.
  const exchange::ReplicaMap& summed() const { return summed_; }
  const PartExchange& parts() const { return *parts_; }
  /// Returns the ranks that make a gradient together.
  comm::Communicator& group() { return group_ ? *group_ : communicator_; }

 private:
  void begin_pass(const MicroBatch& which, std::span<void* const> batch);
  float run_to_end(const MicroBatch& which, std::span<void* const> batch);
  void take_readings(plan::Until until);
  template <class Work>
  double compute(Work work);
  double exposed_seconds() const { return exchange_.exposed_seconds() + parts_->exposed_seconds(); }
  void note_norm();
  float loss();

  comm::Communicator& communicator_;
  const int accumulate_;
  const exchange::ReplicaMap map_, workers_, summed_;
  const int mean_of_;                          // micro-batches per update
  std::unique_ptr<comm::Communicator> group_;  // ranks whose gradients are summed; null: all
  std::unique_ptr<Network> network_;
  StepExchange exchange_;
  Weights weights_;
  std::unique_ptr<plan::Executor> executor_;
  std::optional<PartExchange> parts_;
  std::optional<SliceRanks> slices_;  // if ranks share layers
  const float share_;                 // this rank's share of the computed loss
  std::optional<Passes> passes_;
  std::optional<TableMicroBatches> table_micro_batches_;
  backend::StepInfo info_;
  MicroBatch last_;
  std::vector<float> plain_;  // the prediction, if the plan's layout differs
  double computing_ = 0, exposed_before_ = 0;
  std::vector<double> replica_seconds_;
  GradientNorms norms_;
  bool norm_due_ = false;        // for the last update
  bool backward_ended_ = false;  // for this gradient
  float rate_ = 0;               // in this step
  const bool ahead_;
  std::deque<int64_t> updates_;              // steps whose norms were not read yet
  std::deque<MicroBatchEnd> begun_, ended_;  // by begin_run(): under way, and over
  std::string bad_gradient_;                 // the first that was found on a device
};

}  // namespace tutti::train
