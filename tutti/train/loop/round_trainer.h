#pragma once
// RoundTrainer: the rounds of a run: batches, gradients, and the question whether to stop.

#include <memory>
#include <optional>

#include "tutti/data/transform/sample_writer.h"
#include "tutti/train/loop/batch_source.h"
#include "tutti/train/loop/running.h"
#include "tutti/train/settings/slow_rank.h"

namespace tutti {

/// Not thread-safe; used by the thread that uses the communicator.
class RoundTrainer {
 public:
  /// Collective. `run` outlives it.
  explicit RoundTrainer(Running& run);

  /// When the weights and the rounds are there: the readers begin at the run's step.
  void read_from_here();
  /// The training begins, or goes on after a pause that its clock does not count.
  void start() { step_ended_ = run_.clock.train(); }
  /// One round. Collective. Whether any rank was asked to stop.
  bool train();
  /// Two halves of a vote: each rank says whether it was asked to stop, by which signal, and later
  /// learns whether any was. In between the step computes.
  void ask_to_stop();
  bool stop_asked();
  int asked_by() const { return asked_by_; }  ///< the signal
  /// The samples of a replica's gradient of a step are this rank's, among others.
  void note_samples(int64_t step, int replica);
  /// What readers have under way, for this rank's file of a checkpoint.
  std::vector<NamedTensor> state() const { return batches_->state(); }
  /// Says once that readers do not keep up.
  void report_waiting();

 private:
  std::unique_ptr<BatchSource> make_batches();
  /// What this rank computes next. Returns the seconds that it waited for data.
  double make(const RoundGradient& gradient);
  /// A micro-batch, and what it gives; `local`: among those of this rank. The same.
  double run_batch(int local, const MicroBatch& which);
  const data::Batch& next_batch();
  /// The next step after which something is done together.
  int64_t next_meeting() const;
  /// Where this rank is to be slow: waits as long as its last gradient's computation says, before
  /// it sends anything of this one. Returns the seconds.
  double slow_down(int64_t draw);
  [[noreturn]] void report_nonfinite(const data::Batch& batch, float loss);
  /// NumericError for a gradient that is not finite.
  void require_finite_gradients() const;

  Running& run_;
  std::optional<data::SampleWriter> writer_;
  std::unique_ptr<BatchSource> batches_;
  std::optional<SlowRank> slow_;
  double computed_ = 0, slowed_ = 0;  // seconds of the last gradient; by run.slow
  float last_loss_ = 0;               // of a micro-batch; of a stage that has none 0
  double step_ended_ = 0;             // reading of the training clock
  double reading_before_ = 0;         // of the readers, until this epoch began
  bool waiting_said_ = false;
  int stop_signal_ = 0;  // what asked this rank to stop, then the largest of all ranks'
  std::unique_ptr<comm::CollectiveOperation> stop_vote_;  // empty where there is one rank
  int asked_by_ = 0;
};

}  // namespace tutti
