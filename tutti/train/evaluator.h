#pragma once
// Evaluator: the quality of the present weights on a data set.

#include <memory>

#include "tutti/data/augment.h"
#include "tutti/data/sampler.h"
#include "tutti/plan/executor.h"
#include "tutti/train/metrics.h"

namespace tutti {

/// Runs an evaluation plan over ranges of a data set. Plan, data set and augmentation must outlive
/// it.
class Evaluator {
 public:
  Evaluator(const Plan& plan, Value images, Value logits, const Backend& backend,
            const data::Dataset& dataset, const data::Augment& augment);

  /// Binds the weights and statistics that every later run uses.
  void bind(void* parameters, void* statistics);
  /// Quality over the samples [range.begin, range.end), each counted once; the last batch may be
  /// partial. `keep`, if not null, receives the logits of all samples, row-major.
  ClassifierQuality run(const data::Range& range, int readers, std::vector<float>* keep = nullptr);

 private:
  const Plan& plan_;
  Value images_, logits_;
  Executor executor_;
  const data::Dataset& dataset_;
  const data::Augment& augment_;
};

}  // namespace tutti
