#pragma once
// Running: the state of a running training that the parts of the loop share. Each part has a
// file of its own: rounds of training (round_trainer.h), evaluation (evaluation.h), checkpoints
// (run_checkpoints.h), record and log (run_report.h).

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tutti/config/run_settings.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/trace/span.h"
#include "tutti/train/loop/earlier_part.h"
#include "tutti/train/loop/patience.h"
#include "tutti/train/loop/plateau.h"
#include "tutti/train/loop/progress.h"
#include "tutti/train/loop/reporter.h"
#include "tutti/train/loop/run_shape.h"
#include "tutti/train/loop/trainer.h"
#include "tutti/train/rounds/rounds.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/step/run_clock.h"
#include "tutti/train/step/training_step.h"

namespace tutti::train {

/// Sums since the last line of the record.
struct StepInterval {
  StepTimes times;
  int64_t steps = 0;
  int64_t gradients = 0;  ///< made by this rank; with servers some may have been dropped
  GradientNorms norms;
  std::vector<double> loss;  ///< one loss for each local micro-batch, over steps
  int64_t unknown = 0;       ///< micro-batches whose losses a device has not told yet

  explicit StepInterval(int local_batches) : loss(static_cast<size_t>(local_batches), 0.0) {}
  /// Averages over local micro-batches and steps. Returns NaN if no loss is known.
  double mean_loss() const {
    return std::accumulate(loss.begin(), loss.end(), 0.0) /
           static_cast<double>(steps * static_cast<int64_t>(loss.size()) - unknown);
  }
};

/// Sums since the epoch began.
struct EpochSums {
  StepTimes times = {};
  int64_t steps = 0;
  GradientNorms norms = {};
  double loss = 0;                               ///< sum of the record's lines, over steps
  bool partial = false;                          ///< the epoch began in an earlier process
  double virtual_waited = 0, virtual_begun = 0;  ///< replay: seconds waited; start time
};

/// The run's goal, and its distance from it.
struct RunGoal {
  Goal goal;
  Patience patience;
  std::optional<Plateau> plateau = {};         ///< if the schedule has one
  bool waits = false;                          ///< run.patience ends the run
  bool reached = false;                        ///< the target was reached
  std::map<std::string, double> metrics = {};  ///< results of the last evaluation

  /// Returns the goal's metric in the last evaluation, or NaN.
  double quality() const;
  void save(std::map<std::string, double>& metrics) const;
  void restore(const std::map<std::string, double>& metrics);
};

/// The origin of a resumed run.
struct RunPast {
  std::optional<keep::Checkpoint> checkpoint = {};         ///< open until the first step
  std::vector<std::string> changes = {};                   ///< configuration changes since then
  EarlierPart earlier = {};                                ///< from the record
  std::optional<std::filesystem::path> went_on_from = {};  ///< path of that checkpoint
};

struct Running {
  const TrainerSpec& spec;
  comm::Communicator& comm;
  RunPast past;
  const config::RunConfig config;
  const RunShape shape;
  config::RunSettings settings = {};  ///< settings that a resume compares
  RunGoal goal;
  std::optional<TrainingStep> training = {};
  std::unique_ptr<Rounds> rounds = {};
  std::optional<Reporter> reporter = {};  ///< rank 0
  ProgressDisplay display;
  std::optional<trace::Spans> spans = {};  ///< with run.profile
  RunClock clock = {};
  StepInterval interval;
  EpochSums epoch = {};
  RunResult result = {};
  LeftCheckpoints left = {};
  int64_t step = 0, first_step = 0;  ///< updates done, now and when this process began
  double evaluation_seconds = 0, checkpoint_seconds = 0;
  std::function<bool()> writes_here = {};  ///< whether this rank still writes a checkpoint
  /// Finishes a checkpoint that is being written, if all ranks call it; with several ranks
  /// `together` says so.
  std::function<void()> finish_checkpoint = {};
  bool written_everywhere = false;  ///< no rank did in the last vote
  bool together = false;            ///< an error now is thrown by all ranks: one of them records it

  explicit Running(const TrainerSpec& spec);

  bool first() const { return comm.rank() == 0; }
  const Network& network() const { return training->network(); }
  StepExchange& exchange() { return training->exchange(); }
  const StepExchange& exchange() const { return training->exchange(); }
  trace::RunRecord* record() { return reporter ? &reporter->record() : nullptr; }
  const comm::Machine* machine() const { return spec.machine ? &*spec.machine : nullptr; }
  double epochs_done() const {
    return static_cast<double>(step) / static_cast<double>(shape.steps_per_epoch());
  }
  double learning_rate(int64_t at) const {
    return shape.schedule.rate(at) * (goal.plateau ? goal.plateau->factor() : 1);
  }
  bool stopped_early() const {
    return config.run.patience > 0 && goal.patience.waited() >= config.run.patience;
  }
  /// Returns whether no step is left: a resumed run may already be at its end.
  bool nothing_to_do() const {
    return goal.reached || step >= shape.total_steps || stopped_early();
  }
  /// Returns whether an action that is due every `epochs` epochs is due after step `at`.
  bool every_epochs(double epochs, int64_t at) const;
  bool evaluation_due(int64_t at) const { return every_epochs(config.run.eval_every, at); }
  bool log_due(int64_t at) const;
  bool checkpoint_due(int64_t at) const;
  /// Returns whether something else than training follows step `at`.
  bool pause_due(int64_t at) const {
    return at >= shape.total_steps || log_due(at) || evaluation_due(at) || checkpoint_due(at);
  }

  /// Applies all updates, and takes their norms.
  void finish_update();
  /// Does the same; weights, tables, state and statistics, or the latter alone, may then be read.
  void settle(plan::Kept what = plan::Kept::all);
  /// Takes the norms of finished updates. Throws NumericError for one that is not finite.
  void note_norms();
  void keep_best(int64_t at, double value);
  /// Returns which checkpoint is left, for an error message.
  /// `at`: the step that lost its own.
  std::string what_is_left(int64_t at) const;
  std::string what_is_left() const { return what_is_left(step); }

  /// Begins a span of the trace, if there is one.
  trace::ScopedSpan span(const char* name);
};

}  // namespace tutti::train
