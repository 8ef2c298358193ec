#pragma once
// Evaluation: measures the weights that represent a run on the validation set, and at the end on
// the test set.

#include <optional>

#include "tutti/data/transform/sample_writer.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/exchange/average.h"
#include "tutti/train/loop/evaluator.h"
#include "tutti/train/loop/running.h"

namespace tutti::train {

/// Not thread-safe; used by the thread that uses the communicator.
class Evaluation {
 public:
  /// Collective; make it when the rounds exist. `run` must outlive this object.
  explicit Evaluation(Running& run);

  /// Collective. Judges the validation set. Returns whether these weights are the best so far.
  bool evaluate();
  /// Collective, once, at the end. Measures the test set.
  void test();

  /// Collective. Gathers the values that are evaluated and stored, after Running::settle(): the
  /// weights that represent all replicas (optimizer.ema, Rounds::model) and statistics over all of
  /// them.
  void gather();
  /// Arenas, valid until the next gather().
  std::byte* weights();
  std::byte* statistics() { return averaged_.data(); }

 private:
  /// Makes ready what gather() reads. The step's own weights stay where training has them, since an
  /// evaluation there finds them.
  void settle() { run_.settle(shown_.bytes() > 0 ? plan::Kept::all : plan::Kept::statistics); }
  void average_statistics();
  void gather_weights();
  /// Throws NumericError if the evaluation's loss is not finite.
  void require_finite_loss();
  void count_improvement();
  /// Takes the best weights of the run, or uses the last ones; returns the step of the weights
  /// used.
  int64_t take_tested_weights(std::optional<ModelWeights>& best);

  Running& run_;
  device::Buffer averaged_;  // batch-norm statistics over all replicas
  device::Buffer shown_;  // weights that represent the run, with frozen ones; empty: the step's own
  exchange::ReplicaAverage average_;
  std::optional<data::SampleWriter> writer_, losses_;
  std::optional<Evaluator> evaluator_;
};

}  // namespace tutti::train
