#pragma once
// RoundTrainer: runs the rounds of a run: batches, gradients, and the vote whether to stop.

#include <array>
#include <deque>
#include <memory>
#include <optional>

#include "tutti/data/transform/sample_writer.h"
#include "tutti/train/loop/batch_source.h"
#include "tutti/train/loop/running.h"
#include "tutti/train/settings/slow_rank.h"

namespace tutti::train {

/// Not thread-safe; used by the thread that uses the communicator.
class RoundTrainer {
 public:
  /// Collective. `run` must outlive this object.
  explicit RoundTrainer(Running& run);

  /// Starts the readers at the run's step. Call it when the weights and the rounds exist.
  void read_from_here();
  /// Starts the training clock, or restarts it after a pause that is not counted.
  void start() { step_ended_ = run_.clock.train(); }
  /// Trains one round. Collective. Returns whether any rank was asked to stop.
  bool train();
  /// The two halves of a vote: each rank reports whether it was asked to stop, and by which signal,
  /// and later learns whether any rank was. The step computes in between.
  void ask_to_stop();
  bool stop_asked();
  int asked_by() const { return asked_by_; }  ///< the signal
  /// Announces that this rank will process the samples of a replica's gradient in this step.
  void note_samples(int64_t step, int replica);
  /// Adds the readers' state, for this rank's file of a checkpoint.
  void save(keep::SavedRun& saved) const;
  /// Logs once that readers do not keep up.
  void report_waiting();

 private:
  std::unique_ptr<BatchSource> make_batches();
  /// Computes this rank's next gradient. Returns the seconds that it waited for data.
  double make(const RoundGradient& gradient);
  /// Runs a micro-batch and takes its results; `local` is its index on this rank. Returns the same.
  double run_batch(int local, const MicroBatch& which);
  /// For a step that runs ahead: takes what micro-batches have left.
  void take_ends(plan::Until until);
  const data::Batch& next_batch();
  /// Returns the next step after which all ranks act together.
  int64_t next_meeting() const;
  /// Delays this rank where it is configured to be slow: waits in proportion to the computing
  /// time of its last gradient, before it sends any part of this one. Returns the seconds.
  double slow_down(int64_t draw);
  [[noreturn]] void report_nonfinite(const MicroBatchEnd& end);
  /// Throws NumericError for a gradient that is not finite.
  void require_finite_gradients() const;
  [[noreturn]] void report_bad_gradient(const std::string& gradient, int64_t step,
                                        int local_replica) const;

  Running& run_;
  std::optional<data::SampleWriter> writer_;
  std::unique_ptr<BatchSource> batches_;
  std::optional<SlowRank> slow_;
  double computed_ = 0, slowed_ = 0;  // seconds of the last gradient; delay by run.slow
  float last_loss_ = 0;               // a micro-batch's; 0 on a stage without a loss
  std::deque<int> begun_;      // micro-batches of a step that runs ahead: indices on this rank
  double taking_ = 0;          // seconds in take_ends(), which waits for the device
  double step_ended_ = 0;      // reading of the training clock
  double reading_before_ = 0;  // readers' time until this epoch began
  bool waiting_logged_ = false;
  /// This rank's answers, then the largest of all ranks: the signal that asked it to stop, and 1 if
  /// it still writes a checkpoint.
  std::array<int32_t, 2> vote_{};
  std::unique_ptr<comm::CollectiveOperation> stop_vote_;  // empty if there is one rank
  int asked_by_ = 0;
};

}  // namespace tutti::train
