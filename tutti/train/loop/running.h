#pragma once
// Running: a training run while it goes on, as the parts of the loop share it. Each part has a file
// of its own: rounds of training (round_trainer.h), evaluation (evaluation.h), checkpoints
// (run_checkpoints.h), record and log (run_report.h).

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
#include "tutti/train/settings/settings.h"
#include "tutti/train/step/run_clock.h"
#include "tutti/train/step/training_step.h"

namespace tutti {

/// Sums since the last line of the record.
struct StepInterval {
  StepTimes times;
  int64_t steps = 0;
  int64_t gradients = 0;  ///< of this rank; where ranks are served some may have been dropped
  GradientNorms norms;
  std::vector<double> loss;  ///< of each local micro-batch, over steps

  explicit StepInterval(int local_batches) : loss(static_cast<size_t>(local_batches), 0.0) {}
  /// Over local micro-batches and steps.
  double mean_loss() const {
    return std::accumulate(loss.begin(), loss.end(), 0.0) /
           static_cast<double>(steps * static_cast<int64_t>(loss.size()));
  }
};

/// Sums since the epoch began.
struct EpochSums {
  StepTimes times = {};
  int64_t steps = 0;
  GradientNorms norms = {};
  double loss = 0;                               ///< of the lines of the record, over steps
  bool partial = false;                          ///< it began before this process did
  double virtual_waited = 0, virtual_begun = 0;  ///< of a replay: seconds; time when it began
};

/// What a run wants to reach, and how far it is from it.
struct RunGoal {
  Goal goal;
  Patience patience;
  std::optional<Plateau> plateau;              ///< of the schedule
  bool waits = false;                          ///< run.patience ends the run
  bool reached = false;                        ///< the target
  std::map<std::string, double> metrics = {};  ///< of the last evaluation

  /// The goal's metric in the last evaluation, or NaN.
  double quality() const;
  void save(std::map<std::string, double>& metrics) const;
  void restore(const std::map<std::string, double>& metrics);
};

/// How the run came to be, where it goes on.
struct RunPast {
  std::optional<Checkpoint> checkpoint = {};               ///< open until the first step
  std::vector<std::string> changes = {};                   ///< of the configuration, since then
  EarlierPart earlier = {};                                ///< of the record
  std::optional<std::filesystem::path> went_on_from = {};  ///< that checkpoint
};

struct Running {
  const TrainerSpec& spec;
  comm::Communicator& comm;
  RunPast past;
  const RunConfig config;
  const RunShape shape;
  RunSettings settings = {};  ///< what a resume compares
  RunGoal goal;
  std::optional<TrainingStep> training = {};
  std::unique_ptr<Rounds> rounds = {};
  std::optional<Reporter> reporter = {};  ///< rank 0
  ProgressDisplay display;
  std::optional<Spans> spans = {};  ///< with run.profile
  RunClock clock = {};
  StepInterval interval;
  EpochSums epoch = {};
  RunResult result = {};
  LeftCheckpoints left = {};
  int64_t step = 0, first_step = 0;  ///< updates done; when this process began
  double evaluation_seconds = 0, checkpoint_seconds = 0;
  bool together = false;  ///< an error now is thrown by all ranks: one of them records it

  explicit Running(const TrainerSpec& spec);

  bool first() const { return comm.rank() == 0; }
  const Network& network() const { return training->network(); }
  StepExchange& exchange() { return training->exchange(); }
  const StepExchange& exchange() const { return training->exchange(); }
  RunRecord* record() { return reporter ? &reporter->record() : nullptr; }
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
  /// Whether no step is to be taken: of a resume that finds its end behind it.
  bool nothing_to_do() const {
    return goal.reached || step >= shape.total_steps || stopped_early();
  }
  /// Whether something is due after a step that is done every so many epochs.
  bool every_epochs(double epochs, int64_t at) const;
  bool evaluation_due(int64_t at) const { return every_epochs(config.run.eval_every, at); }
  bool log_due(int64_t at) const;
  bool checkpoint_due(int64_t at) const;

  /// Applies all updates, and takes their norms.
  void settle();
  /// Takes the norms of the updates that are over. NumericError for one that is not finite.
  void note_norms();
  void keep_best(int64_t at, double value);
  /// Which checkpoint is left, for the message of an error.
  std::string what_is_left() const;

  /// A span of the trace from here on, where there is one.
  ScopedSpan span(const char* name);
};

}  // namespace tutti
