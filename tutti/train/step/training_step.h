#pragma once
// TrainingStep: one step of this rank's replicas as a value: forward, backward, exchange, update.
// The trainer, the benchmarks and the tests take the same one.
//
//   TrainingStep step(...);  fill step.weights();  step.start();
//   for each step: begin(); run() for each local turn; update()
//
// A turn is one batch of one replica, with a gradient of its own. A replica has `accumulate` of
// them in a step, one after another; their gradients are added in the tree that adds those of
// replicas. Replicas that are apart have weights of their own, and each is updated by its own
// gradients alone: whoever wants them to meet changes weights() between two steps
// (sync/meeting.h). Replicas that are served (train/rounds/servers.h) update the one set of weights
// several times in a step, `served` of them at a time: serve() before their turns, update() after
// them. Of a replica whose layers several ranks have (parallel.pipeline) a rank's turns are those
// of its stage (train/step/stage_turns.h).

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
#include "tutti/train/step/run_clock.h"
#include "tutti/train/step/stage_turns.h"
#include "tutti/train/step/step_exchange.h"
#include "tutti/train/step/table_turns.h"

namespace tutti {

struct TrainingStepSpec {
  NetworkSpec network;
  ExchangeSettings exchange;  ///< network.training.optimizer.sharded is set to what it says
  ReplicaMap map;      ///< of replicas to groups of ranks; a rank is a group where none share one
  PartGrid grid = {};  ///< the groups; network.training.split.grid is set to it
  int accumulate = 1;  ///< turns of a replica in each step
  PipelineOrder order = PipelineOrder::one_f_one_b;  ///< of them, where the grid has stages
  bool apart = false;   ///< replicas are; then exchange.sharded is false and no two share ranks
  std::string spill{};  ///< folder for what they have of their own; empty: memory
  int served = 0;       ///< replicas that make a gradient; 0: all of them. Needs one rank
  int group = 0;        ///< ranks that make a gradient for servers of ranks, one replica each
                        ///< (train/rounds/rank_servers.h); 0: there are none
  uint64_t seed = 0;    ///< of dropout and of initial weights
  NoiseSettings noise = {};  ///< of the gradient; not of replicas apart, nor where ranks share
                             ///< samples or gradients are compressed
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

/// One of several gradients of a step, and its update.
struct ServedGradient {
  int worker = 0;      ///< `served` replicas, whose statistics the turns use
  int64_t update = 0;  ///< of all, from 0
  float rate = 0;
  const std::byte* weights = nullptr;  ///< that it is taken of: an arena of parameters
  float compensation = 0;              ///< lambda of DC-ASGD; 0: none
};

/// Those who each have a loss: replicas, or the ranks that share one. ConfigError where replicas
/// that share ranks have none of their own.
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

  /// Around each step; `step` counts updates from 0. `learning_rate`: of its update.
  void begin(int64_t step, float learning_rate);
  /// Of replicas that are served: before the turns of a gradient. It borrows its weights until
  /// update().
  void serve(const ServedGradient& gradient);
  /// Of ranks that make gradients for servers: as which replica, after begin().
  void stand_for(int replica) { stands_for_ = replica; }
  /// Of the same, after the turns of a gradient and before update(), which takes what the servers
  /// send, or weights_changed(): it leaves for them.
  void end_of_backward() { exchange_.end_of_backward(); }
  /// Forward and backward of a local turn, in their order; `batch` fills network().inputs. Its
  /// loss, over its batch; of a part, what it adds to that. Sums of complete buckets leave while it
  /// runs.
  float run(int local_turn, std::span<void* const> batch);
  /// The first prediction of the last run(), in the plain layout; not where parts share samples.
  const float* prediction();
  /// "the gradient of 'conv1.weight' is not finite ..." for the first such one of this step.
  const std::string& bad_gradient() const { return exchange_.bad_gradient(); }
  /// Applies the sums that have arrived; the others wait for the next run() or settle().
  void update();
  /// Applies all of them: before anybody reads the weights.
  void settle();
  /// Somebody has changed weights() since the last update().
  void weights_changed() { bound_ = -1; }
  /// Where gradients are clipped: their norms, of the updates that are over, since the last call;
  /// the last update is one of them after the next run() or settle(). The same on all ranks, but
  /// for replicas that are apart: then they are of the local ones.
  GradientNorms take_gradient_norms() { return std::exchange(norms_, {}); }
  /// Seconds of the last step in which this rank computed, and waited for others.
  StepTimes times() const;
  /// Seconds of the last step that each local replica computed: its turns, and the update, which
  /// those that are not apart share.
  std::span<const double> replica_seconds() const { return replica_seconds_; }

  /// Of the turn whose run() is next or under way, among all of the job; they are `replica` there.
  StepInfo info() const { return info_; }
  /// Of the same turn.
  int local_replica() const { return local_replica_; }
  /// The weights that it reads, where they are not those of weights().
  const std::byte* lent_weights() const { return gradient_.weights; }
  const Network& network() const { return *network_; }
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }
  StepExchange& exchange() { return exchange_; }
  const StepExchange& exchange() const { return exchange_; }
  Executor& executor() { return executor_; }
  const ReplicaMap& map() const { return map_; }
  /// Those who each have a gradient to sum: the replicas, or their parts.
  const ReplicaMap& workers() const { return workers_; }
  /// Of the workers.
  const ReplicaMap& turns() const { return turns_; }
  const PartExchange& parts() const { return *parts_; }
  /// The ranks that make gradients together.
  comm::Communicator& group() { return *summed_; }

 private:
  template <class Work>
  double compute(Work work);
  double exposed_seconds() const { return exchange_.exposed_seconds() + parts_->exposed_seconds(); }
  void note_norm();
  void enter(int local_replica);
  bool settles_at_once() const { return apart_ || served_ > 0; }
  float loss() const;

  comm::Communicator& communicator_;
  const int accumulate_, served_;
  const ReplicaMap map_, workers_, turns_;  // turns_: of those whose gradients are summed
  const bool apart_, grouped_;  // replicas are; ranks make gradients for servers of ranks
  std::unique_ptr<comm::Communicator> summed_;  // the ranks whose gradients are; null: all
  std::unique_ptr<Network> network_;
  StepExchange exchange_;
  Weights weights_;
  Executor executor_;
  std::optional<PartExchange> parts_;
  std::optional<SliceRanks> slices_;  // where ranks share layers
  const float share_;                 // of the loss that this rank has computed
  std::optional<StageTurns> stage_;   // where replicas have stages
  std::optional<TableTurns> table_turns_;
  StepInfo info_;
  std::vector<float> plain_;  // of the prediction, where the plan has another layout
  double computing_ = 0, exposed_before_ = 0;
  std::vector<double> replica_seconds_;
  GradientNorms norms_;
  bool norm_due_ = false;    // of the last update
  float rate_ = 0;           // of this step
  ServedGradient gradient_;  // where replicas are served
  int local_replica_ = 0, stands_for_ = 0;
  int entered_ = -1;  // where replicas are apart: whose turns are under way
  int bound_ = 0;     // whose weights are packed; -1: nobody's
};

}  // namespace tutti
