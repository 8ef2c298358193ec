#pragma once
// Rounds: how the replicas of a run meet. The training loop knows this interface alone; each way of
// meeting is a maker in a file of its own.
//
//   rounds = make_rounds(...); restore the weights; rounds->start(checkpoint, step);
//   for each round: begin(first, end); while (gradient = next()) run its micro-batches;
//                   step = end()
//
// A round is one step, or several where ranks serve each other and need not wait for all. Between
// two rounds every rank has the weights that all have together, so evaluations and checkpoints
// know nothing of how they came about.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/cost/machine.h"
#include "tutti/config/config.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/named_tensor.h"
#include "tutti/trace/record.h"
#include "tutti/train/step/training_step.h"

namespace tutti {

/// What a rank computes next: micro-batches whose gradients are added up, in their order.
struct RoundGradient {
  int64_t number = 0;  ///< each gradient that run.slow delays has one of its own
  bool slowed = true;  ///< run.slow delays it
  int first = 0;       ///< the first one's place among this rank's micro-batches of a round
  std::vector<MicroBatch> batches;
};

/// Not thread-safe; used by the thread that uses the communicator.
class Rounds {
 public:
  virtual ~Rounds() = default;

  /// Collective, once, when the step's weights are there. Takes from the checkpoint what it has of
  /// this way of meeting (null: a new run), and starts the step. `step`: updates done.
  virtual void start(const Checkpoint* resumed, int64_t step) = 0;

  /// Whether a round may have several steps; otherwise begin() is called for each.
  virtual bool takes_several_steps() const { return false; }
  virtual void begin(int64_t first, int64_t end) = 0;
  /// Applies the gradient before, if there was one, and names the next; nothing where the round has
  /// no more for this rank. `signal`: not 0 where this rank was asked to stop, which ends a round
  /// of several steps early.
  virtual std::optional<RoundGradient> next(int signal) = 0;
  /// Returns the step at which the next round begins. Collective where replicas meet.
  virtual int64_t end(int signal) = 0;
  /// What has asked any rank to stop in the last round of several steps; 0: nothing.
  virtual int asked() const { return 0; }
  /// Seconds of the last round in which this rank computed, and waited for others.
  virtual StepTimes times() const = 0;
  /// Seconds that this rank computed for its last gradient that run.slow delays.
  virtual double computed() const { return times().compute; }

  /// Whether other weights than the step's stand for all replicas: model() then gives them.
  virtual bool has_model() const { return false; }
  /// Collective. The trained parameters that are evaluated and kept as the model.
  virtual void model(std::span<float> /*weights*/) {}
  /// Whether the first replica stands for all: its statistics are not averaged with others'.
  virtual bool first_stands_for_all() const { return false; }

  /// Collective. Says in the log and the record how replicas have met since the last call.
  /// `record`: of rank 0; null on others.
  virtual void report(int64_t /*step*/, RunRecord* /*record*/) {}

  /// Seconds on the machine of a replay; nothing of other runs.
  virtual std::optional<double> virtual_seconds() const { return std::nullopt; }
  /// Mean seconds in which a replica waited on that machine since the last call.
  virtual double take_virtual_wait() { return 0; }

  /// Collective, before state(): rank 0 gets what other ranks have of it.
  virtual void collect_state() {}
  /// What all ranks have alike besides the model, for the state file of a checkpoint.
  virtual std::vector<TensorRef> state() = 0;
  /// What this rank alone has, where it lies: for its own file.
  virtual std::vector<TensorRef> own_state() = 0;
  /// Numbers that all ranks have alike, as metrics of a checkpoint.
  virtual void save(std::map<std::string, double>& /*metrics*/) const {}

  /// The run is over: ranks that only serve end with this.
  virtual void dismiss(RunStatus /*status*/) {}
};

/// The name of a checkpoint's metric: the seconds on the machine of a replay.
inline constexpr const char* kVirtualSeconds = "virtual_seconds";

/// What rounds are made of. All that is borrowed outlives them.
struct RoundsSpec {
  const RunConfig& config;
  const Backend& backend;
  TrainingStep& step;
  comm::Communicator& workers;        ///< the ranks that compute
  comm::Communicator* job = nullptr;  ///< these and ranks that only serve; null: there are none
  const comm::Machine* machine = nullptr;  ///< of a replay; null: this is none
  PartGrid grid = {};
  ReplicaMap replicas;  ///< that are computed, on groups of ranks that share one
  int devices = 1;      ///< that replicas are on: more than these where some are backups
  int64_t steps_per_epoch = 1;
  bool dependent_batches = false;                        ///< a batch depends on the step before
  std::function<double(int64_t step)> rate;              ///< the learning rate
  std::function<void(int64_t step, int replica)> comes;  ///< this rank will need these samples
};

/// Which way of meeting a configuration asks for.
enum class RoundsKind {
  every_step,      ///< gradients are summed over all replicas in every step
  apart,           ///< each replica follows its own gradients; they meet between steps
  served_replay,   ///< gradients are applied one by one in the order of a machine's clock
  served_by_ranks  ///< the same by ranks that serve the weights, in the order of real time
};
RoundsKind rounds_kind(const RunConfig& config, int devices, int replicas, bool has_machine);

/// Collective, before the step's weights are restored: it says which rows of checkpoints there are.
std::unique_ptr<Rounds> make_rounds(const RoundsSpec& spec);

}  // namespace tutti
