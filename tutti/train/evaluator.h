#pragma once
// Evaluator: the quality of the present weights on a data set.

#include <functional>
#include <memory>

#include "tutti/data/sampler.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/plan/executor.h"
#include "tutti/train/metrics.h"
#include "tutti/train/network.h"

namespace tutti {

/// Runs an evaluation plan over ranges of a data set. Network, data set and writer must outlive it.
class Evaluator {
 public:
  /// `writer`: fills the tensors of network.batch().
  Evaluator(const EvaluationNetwork& network, const Backend& backend, const data::Dataset& dataset,
            const data::SampleWriter& writer,
            std::span<const std::shared_ptr<const Metric>> metrics);

  /// Binds the weights and statistics that every later run uses.
  void bind(void* parameters, void* statistics);
  /// Quality over the samples [range.begin, range.end), each counted once; the last batch may be
  /// partial. `keep`, if not null, receives each of the network's predictions of all samples in the
  /// plain layout.
  Quality run(const data::Range& range, int readers,
              std::vector<std::vector<float>>* keep = nullptr);

  /// One of the network's predictions of the next `count` samples, in the plain layout.
  using TakePredictions = std::function<void(size_t output, const float* y, int64_t count)>;
  /// Predicts alone, in the order of the samples: the writer may fill the inputs only.
  void predict(const data::Range& range, int readers, const TakePredictions& take);

 private:
  /// Calls each(batch) for the batches of `range` in their order, their predictions made.
  template <class Each>
  void for_batches(const data::Range& range, int readers, Each each);
  /// A prediction in the plain layout; in `plain_` where the plan has another.
  const float* prediction(size_t output);

  const EvaluationNetwork& network_;
  Executor executor_;
  const data::Dataset& dataset_;
  const data::SampleWriter& writer_;
  std::vector<std::shared_ptr<const Metric>> metrics_;
  std::vector<std::vector<float>> plain_;  ///< of each prediction
};

}  // namespace tutti
