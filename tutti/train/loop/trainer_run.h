#pragma once
// A training run while it goes on: what train() (trainer.h) works with. Each part of the class
// stands in a file of its own, which its heading names. Private to trainer*.cpp.

#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/config/run_settings.h"
#include "tutti/data/pipeline/sampler.h"
#include "tutti/device/cpu/machine_watch.h"
#include "tutti/exchange/average.h"
#include "tutti/exchange/replicas.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/sync/stragglers.h"
#include "tutti/trace/span.h"
#include "tutti/train/loop/batch_source.h"
#include "tutti/train/loop/earlier_part.h"
#include "tutti/train/loop/evaluator.h"
#include "tutti/train/loop/patience.h"
#include "tutti/train/loop/plateau.h"
#include "tutti/train/loop/progress.h"
#include "tutti/train/loop/reporter.h"
#include "tutti/train/loop/trainer.h"
#include "tutti/train/network/schedule.h"
#include "tutti/train/rounds/rounds.h"
#include "tutti/train/settings/settings.h"
#include "tutti/train/settings/slow_rank.h"
#include "tutti/train/settings/units.h"
#include "tutti/train/step/run_clock.h"
#include "tutti/train/step/training_step.h"

namespace tutti {

/// Sums since the last line of the record.
struct StepInterval {
  StepTimes times;
  int64_t steps = 0;
  int64_t gradients = 0;  ///< of this rank; where ranks are served some may have been dropped
  GradientNorms norms;
  std::vector<double> loss;  ///< of each local turn (train/step/training_step.h), over steps

  explicit StepInterval(int local_turns) : loss(static_cast<size_t>(local_turns), 0.0) {}
  /// Over local turns and steps.
  double mean_loss() const {
    return std::accumulate(loss.begin(), loss.end(), 0.0) /
           static_cast<double>(steps * static_cast<int64_t>(loss.size()));
  }
};

class TrainerRun {
 public:
  explicit TrainerRun(const TrainerSpec& spec);
  RunResult run();

 private:
  // --- trainer_setup.cpp: what the loop needs, new or from a checkpoint ---
  /// All ranks must have the same configuration and data, and a resumed run what the run before it
  /// had.
  void compare_with_before();
  /// The choices that this run must keep to. Where something else changed they are advice: the bits
  /// differ anyway, and a changed network may not have what the old one used.
  Choices choices_before() const;
  void build();
  /// The network, its weights and their exchange, new or as the checkpoint has them.
  void build_step();
  RoundsSpec rounds_spec();
  /// What the replicas meet for besides their gradients.
  void build_meetings();
  /// The readers of both data sets, at the step where training begins or goes on.
  void build_data();
  std::unique_ptr<BatchSource> make_batches();
  void report_waiting();
  /// Where the run before stood. The best checkpoint counts where it is of this run's past: not of
  /// steps that are computed again or of a course that was left, and not lost since.
  void go_on_from(const Checkpoint& checkpoint);
  void keep_best(int64_t step, double value);
  /// What the record says of the run before. Rank 0 reads it for all.
  EarlierPart read_earlier(const CheckpointInfo& checkpoint) const;

  // --- trainer.cpp: the loop ---
  void loop();
  /// Whether any rank was asked to stop.
  bool train_round();
  /// What this rank computes next. Returns the seconds that it waited for data.
  double make(const RoundGradient& gradient);
  /// A micro-batch, and what it gives; `local`: among those of this rank. The same.
  double run_batch(int local, const MicroBatch& batch);
  /// The samples of a replica's gradient of a step are this rank's, among others.
  void note_samples(int64_t step, int replica);
  /// The next step after which something is done together.
  int64_t next_meeting() const;
  const data::Batch& next_batch();
  /// Where this rank is to be slow: waits as long as its last step's computation says, before it
  /// sends anything of this one. Returns the seconds.
  double slow_down(int64_t draw);
  /// Takes the norms of the updates that are over. NumericError for one that is not finite.
  void note_norms();
  void settle() {
    training_->settle();
    note_norms();
  }
  [[noreturn]] void report_nonfinite(const data::Batch& batch, float loss);
  /// NumericError for a gradient that is not finite.
  void require_finite_gradients() const;
  /// Two halves of a vote: each rank says whether it was asked to stop, by which signal, and later
  /// learns whether any was. In between the step computes.
  void ask_to_stop();
  bool stop_asked();
  bool every_epochs(double epochs, int64_t step) const;
  bool evaluation_due(int64_t step) const;
  bool evaluation_due() const { return evaluation_due(step_); }
  bool checkpoint_due(int64_t step) const;
  bool log_due(int64_t step) const;

  // --- trainer_evaluation.cpp ---
  void average_statistics();
  /// What is evaluated and kept instead of the weights: with optimizer.ema their moving average, of
  /// replicas that train apart the model that they have together. Collective.
  void gather_shown();
  /// The weights that are evaluated and that a checkpoint shows.
  std::byte* shown_weights();
  /// The goal's metric in the last evaluation, or NaN.
  double quality() const;
  /// Whether these weights are to be kept as the best so far.
  bool evaluate();
  /// NumericError where the evaluation's loss is none.
  void require_finite_loss();
  void count_improvement();
  bool stopped_early() const {
    return config_.run.patience > 0 && patience_.waited() >= config_.run.patience;
  }
  std::string stopped_early_words() const;
  double learning_rate(int64_t step) const {
    return schedule_.rate(step) * (plateau_ ? plateau_->factor() : 1);
  }

  // --- trainer_test_set.cpp: the test set, once, at the end ---
  void test();
  /// Takes the best weights of the run, or has the last ones already; the step that they are of.
  int64_t take_tested_weights(std::optional<ModelWeights>& best);

  // --- trainer_noise.cpp: the gradient's noise scale ---
  /// Nothing to measure where a step has one batch, and where there is no mean gradient to look at.
  NoiseSettings measured_noise() const;
  void restore_noise(const std::map<std::string, double>& metrics);
  void save_noise(std::map<std::string, double>& metrics) const;
  /// Collective. Of the steps since the last time, whose sums have all arrived.
  void report_noise();
  /// Says it once an epoch.
  void log_noise() const;

  // --- trainer_checkpoints.cpp ---
  CheckpointInfo info_now() const;
  /// Whether a rank keeps what no other rank has. Collective.
  bool needs_rank_files();
  /// Each rank its own file, rank 0 those that all have alike; it is there when all are. Throws
  /// IoError on all ranks. Collective.
  struct Written {
    std::string path;
    int64_t bytes = 0;  // of all files
  };
  Written write_together(bool best);
  /// What all replicas have alike, as far as this rank has it; those who share layers take part.
  struct Alike {
    std::vector<NamedTensor> model, state;
  };
  Alike export_alike();
  void write_alike(CheckpointWriter& writer, const Alike& alike);
  uint64_t write_own(const std::filesystem::path& checkpoint, const RankFiles& files);
  /// `best`: of the best evaluation so far. Where the run does not end here, one that cannot be
  /// written costs a warning: the earlier ones are valid, and the next may find space.
  void write_checkpoint_now(bool best, bool ends);
  std::string what_is_left() const;

  // --- trainer_record.cpp: what the record and the log say ---
  void open_record();
  RunStart start_event();
  double flop_per_sample();
  /// Mean over all turns of all replicas, one value of each local one.
  double mean_over_turns(std::span<const double> local);
  ProgressState progress(double loss) const;
  void log_steps();
  void end_epoch();
  void report_compression();
  /// Where samples came from since the last time. Collective.
  void report_data();
  /// How the stages have spent the epoch. Collective.
  void report_stages(int64_t steps);
  /// Why this and other ranks left samples out since the last time. Collective.
  std::vector<std::string> new_reasons();
  // --- trainer_machine.cpp ---
  /// Records the machine's work beside the run since the last time; `ends`: it says so. Collective.
  void report_machine(bool ends);
  void stop(RunStatus status, const std::string& reason);
  /// The flags with which the run goes on beyond what has ended it.
  std::string beyond_this_end() const;
  RunStop stop_event(RunStatus status, const std::string& reason) const;
  /// The rank that sees the cause writes the record's last line, whichever it is: rank 0 may be
  /// ended before it hears of it. Errors of communication have their cause elsewhere, so of those
  /// rank 0's is enough.
  void record_failure(const std::exception& error);

  bool has_clock() const { return spec_.machine.has_value(); }
  /// No step: of a resume that finds its end behind it.
  bool nothing_to_do() const { return target_reached_ || step_ >= total_steps_ || stopped_early(); }
  bool first() const { return comm_.rank() == 0; }
  /// The ranks that have the same statistics each of their own, and who of them has which.
  comm::Communicator& alike() { return grid_.stages() > 1 ? exchange().communicator() : comm_; }
  const ReplicaMap& with_statistics() const { return grid_.stages() > 1 ? replicas_ : workers_; }
  const Network& network() const { return training_->network(); }
  StepExchange& exchange() { return training_->exchange(); }
  const StepExchange& exchange() const { return training_->exchange(); }
  double epochs_done() const {
    return static_cast<double>(step_) / static_cast<double>(sampler_.steps_per_epoch());
  }
  Spans* spans() { return spans_ ? &*spans_ : nullptr; }
  Spans::Name span_name(const char* text) { return spans_ ? spans_->name(text) : Spans::Name{}; }
  int span_lane() { return spans_ ? spans_->lane("trainer") : 0; }

  /// The name of a checkpoint's metric: StepExchange::verdict().
  static constexpr const char* kCompressionPays = "compression_pays";
  static constexpr const char* kPatience = "patience";
  static constexpr const char* kNoise = "noise";

  const TrainerSpec& spec_;
  const RunPlace& place_;
  comm::Communicator& comm_;
  std::optional<Checkpoint> resumed_;  // until the first step
  const RunConfig config_;
  const PartGrid grid_;
  const int devices_;          // that replicas are on
  const int gradients_;        // of a step: of fewer of them where a quorum is enough
  const ReplicaMap replicas_;  // that are computed, on groups of ranks that share them
  const ReplicaMap workers_;   // who each have statistics: replicas, or their parts
  const int accumulate_;
  const ReplicaMap turns_;  // of the workers: they each have a gradient in every step
  const BatchSizes batch_;
  const data::Sampler sampler_;
  const int64_t total_steps_;
  const LearningRateSchedule schedule_;
  Goal goal_;
  Patience patience_;
  std::optional<Plateau> plateau_;  // of that schedule

  std::optional<TrainingStep> training_;
  std::unique_ptr<Rounds> rounds_;
  double virtual_before_ = 0, virtual_waited_ = 0;  // of a replay: until this epoch began; in it
  Buffer averaged_;  // batch-norm statistics over all replicas, for evaluation and checkpoints
  Buffer shown_;  // the weights that stand for others: the moving average of optimizer.ema, or what
                  // replicas apart have as their model; and frozen ones
  std::optional<Spans> spans_;  // with run.profile
  std::optional<ReplicaAverage> average_;
  std::optional<Stragglers> stragglers_;
  std::optional<SlowRank> slow_;
  double computed_ = 0;                                            // seconds of the last gradient
  double slowed_ = 0;                                              // seconds, by run.slow
  double logged_loss_ = std::numeric_limits<double>::quiet_NaN();  // of the last line
  float last_loss_ = 0;  // of a turn; of a stage that has none 0
  std::optional<data::SampleWriter> training_batch_, evaluation_batch_, loss_batch_;
  std::optional<Evaluator> evaluator_;
  std::unique_ptr<BatchSource> batches_;
  std::optional<Reporter> reporter_;  // rank 0
  ProgressDisplay display_;
  RunClock clock_;
  std::optional<MachineWatch> watch_;  // since the training began
  ProcessorTime machine_told_;         // in the record
  double step_ended_ = 0;              // reading of the training clock
  RunClock::Clock::time_point run_started_;

  int64_t step_ = 0, first_step_ = 0, epoch_steps_ = 0;
  RunSettings settings_;                               // what a resume compares
  std::vector<std::string> changes_;                   // of this resume
  EarlierPart earlier_;                                // of this resume
  std::optional<std::filesystem::path> went_on_from_;  // a checkpoint
  LeftCheckpoints left_;
  bool together_ = false;  // an error now is thrown by all ranks: one of them records it
  StepInterval interval_;
  StepTimes epoch_times_;
  double reading_before_ = 0;  // of the readers, until this epoch began
  bool waiting_said_ = false;
  GradientNorms epoch_norms_;
  NoiseAverage noise_;
  std::vector<NoiseAverage> layer_noise_;  // of each parameter, with run.noise_layers
  double epoch_loss_ = 0, evaluation_seconds_ = 0, checkpoint_seconds_ = 0, startup_seconds_ = 0;
  bool epoch_partial_ = false, target_reached_ = false;
  int stop_signal_ = 0;  // what asked this rank to stop, then the largest of all ranks'
  std::unique_ptr<comm::CollectiveOperation> stop_vote_;  // empty where there is one rank
  int asked_by_ = 0;
  std::vector<double> data_sums_;  // of all ranks, as report_data() had them last
  size_t reasons_told_ = 0;
  RunResult result_;
};

}  // namespace tutti
