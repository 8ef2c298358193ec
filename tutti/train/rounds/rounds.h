#pragma once
// Rounds: the ways in which the replicas of a run meet. The training loop knows only this
// interface; each way is implemented in a file of its own.
//
//   rounds = make_rounds(...); restore the weights; rounds->start(checkpoint, step);
//   for each round: begin(first, end); while (gradient = next()) run its micro-batches;
//                   step = end()
//
// A round is one step, or several where ranks serve each other and need not wait for all. Between
// two rounds every rank has the weights that all share, so evaluations and checkpoints do not
// depend on how these were obtained.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/cost/machine.h"
#include "tutti/config/config.h"
#include "tutti/keep/kept_state.h"
#include "tutti/trace/record.h"
#include "tutti/train/step/training_step.h"

namespace tutti::train {

/// A rank's next gradient: micro-batches whose gradients are summed, in their order.
struct RoundGradient {
  int64_t number = 0;  ///< each gradient that run.slow delays has its own number
  bool slowed = true;  ///< run.slow delays it
  int first = 0;       ///< index of the first one among this rank's micro-batches of a round
  std::vector<MicroBatch> batches;
};

/// Not thread-safe; used by the thread that uses the communicator.
class Rounds {
 public:
  virtual ~Rounds() = default;

  /// Collective, once, when the step's weights exist. Restores the state for this way of meeting
  /// from the checkpoint (null: a new run), and starts the step. `step`: updates done.
  virtual void start(const keep::Checkpoint* resumed, int64_t step) = 0;

  /// Returns whether a round may have several steps; otherwise begin() is called for each.
  virtual bool takes_several_steps() const { return false; }
  virtual void begin(int64_t first, int64_t end) = 0;
  /// Applies the previous gradient, if there was one, and returns the next; nothing if the round
  /// has no more for this rank. `signal`: not 0 if this rank was asked to stop, which ends a
  /// round of several steps early.
  virtual std::optional<RoundGradient> next(int signal) = 0;
  /// Returns the step at which the next round begins. Collective where replicas meet.
  virtual int64_t end(int signal) = 0;
  /// Returns the signal that asked any rank to stop in the last round of several steps; 0: none.
  virtual int asked() const { return 0; }
  /// Returns the seconds of the last round in which this rank computed or waited for others.
  virtual StepTimes times() const = 0;
  /// Returns the seconds that this rank computed for the last gradient that run.slow delays.
  virtual double computed() const { return times().compute; }

  /// Returns whether weights other than the step's represent all replicas: model() then returns
  /// them.
  virtual bool has_model() const { return false; }
  /// Collective. Returns the trained parameters that are evaluated and stored as the model.
  virtual void model(std::span<float> /*weights*/) {}
  /// Returns whether the first replica represents all: its statistics are not averaged with
  /// others'.
  virtual bool first_stands_for_all() const { return false; }

  /// Collective. Reports in the log and the record how replicas have met since the last call.
  /// `record` is given on rank 0 and null on others.
  virtual void report(int64_t /*step*/, trace::RunRecord* /*record*/) {}

  /// Returns the seconds on a replay's machine; nothing for other runs.
  virtual std::optional<double> virtual_seconds() const { return std::nullopt; }
  /// Returns the mean seconds that a replica waited on that machine since the last call.
  virtual double take_virtual_wait() { return 0; }

  /// Collective. Adds the state besides the model (KeptState::save): the optimizer's, this way of
  /// meeting's, and the one of compression.
  virtual void save(keep::SavedRun& saved) = 0;

  /// Called when the run is over: ranks that only serve then end.
  virtual void dismiss(trace::RunStatus /*status*/) {}
};

/// The checkpoint metric that holds the seconds on a replay's machine.
inline constexpr const char* kVirtualSeconds = "virtual_seconds";

/// The inputs of rounds. Everything borrowed must outlive them.
struct RoundsSpec {
  const config::RunConfig& config;
  const backend::Backend& backend;
  TrainingStep& step;
  comm::Communicator& workers;        ///< the ranks that compute
  comm::Communicator* job = nullptr;  ///< these and ranks that only serve; null: there are none
  const comm::Machine* machine = nullptr;  ///< for a replay; null: this is none
  split::PartGrid grid = {};
  exchange::ReplicaMap replicas;  ///< computed ones, on groups of ranks that share one
  int devices = 1;  ///< devices with replicas: more than `replicas` if some are backups
  int64_t steps_per_epoch = 1;
  bool dependent_batches = false;                        ///< a batch depends on the previous step
  std::function<double(int64_t step)> rate;              ///< the learning rate
  std::function<void(int64_t step, int replica)> comes;  ///< announces this rank's samples
};

/// The way of meeting that a configuration selects.
enum class RoundsKind {
  every_step,      ///< gradients are summed over all replicas in every step
  apart,           ///< each replica follows its own gradients; they meet between steps
  served_replay,   ///< gradients are applied one by one in the order of a machine's clock
  served_by_ranks  ///< the same, by ranks that serve the weights, in the order of real time
};
RoundsKind rounds_kind(const config::RunConfig& config, int devices, int replicas,
                       bool has_machine);

/// Collective; call it before the step's weights are restored, since it determines the rows of
/// checkpoints.
std::unique_ptr<Rounds> make_rounds(const RoundsSpec& spec);

}  // namespace tutti::train
