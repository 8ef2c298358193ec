#pragma once
// Evaluation: the weights that stand for a run, judged on the validation set, and at the end on the
// test set.

#include <optional>

#include "tutti/data/transform/sample_writer.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/exchange/average.h"
#include "tutti/train/loop/evaluator.h"
#include "tutti/train/loop/running.h"

namespace tutti {

/// Not thread-safe; used by the thread that uses the communicator.
class Evaluation {
 public:
  /// Collective, when the rounds are there. `run` outlives it.
  explicit Evaluation(Running& run);

  /// Collective. Judges the validation set. Whether these weights are to be kept as the best so
  /// far.
  bool evaluate();
  /// Collective, once, at the end: measures the test set.
  void test();

  /// Collective. Puts together what is evaluated and kept: the weights that stand for all replicas
  /// (optimizer.ema, Rounds::model) and statistics over all of them.
  void gather();
  /// Arenas, valid until the next gather().
  std::byte* weights();
  std::byte* statistics() { return averaged_.data(); }

 private:
  void average_statistics();
  void gather_weights();
  /// NumericError where the evaluation's loss is none.
  void require_finite_loss();
  void count_improvement();
  /// Takes the best weights of the run, or has the last ones already; the step that they are of.
  int64_t take_tested_weights(std::optional<ModelWeights>& best);

  Running& run_;
  Buffer averaged_;  // batch-norm statistics over all replicas
  Buffer shown_;     // weights that stand for others, frozen ones among them; empty: the step's own
  ReplicaAverage average_;
  std::optional<data::SampleWriter> writer_, losses_;
  std::optional<Evaluator> evaluator_;
};

}  // namespace tutti
