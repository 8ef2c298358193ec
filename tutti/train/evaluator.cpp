#include "tutti/train/evaluator.h"

#include "tutti/data/pipeline.h"

namespace tutti {

Evaluator::Evaluator(const Plan& plan, Value images, Value logits, const Backend& backend,
                     const data::Dataset& dataset, const data::Augment& augment)
    : plan_(plan), images_(images), logits_(logits), executor_(plan, backend), dataset_(dataset),
      augment_(augment) {}

void Evaluator::bind(void* parameters, void* statistics) {
  executor_.bind(kParameters, parameters);
  executor_.bind(kStatistics, statistics);
}

ClassifierQuality Evaluator::run(const data::Range& range, int readers, std::vector<float>* keep) {
  data::PipelineSpec spec;
  spec.threads = readers;
  data::Pipeline pipeline(dataset_, augment_,
                          std::make_unique<data::EvaluationOrder>(range, plan_.batch), spec);
  const int64_t classes = plan_.desc(logits_).shape[1];
  ClassifierQuality quality;
  executor_.pack();
  while (pipeline.remaining() > 0) {
    const data::Batch& batch = pipeline.next();
    executor_.bind_input(images_, batch.images);
    executor_.run({});
    const auto count = static_cast<size_t>(batch.id.count);
    const std::span logits(static_cast<const float*>(executor_.result(logits_)),
                           count * static_cast<size_t>(classes));
    quality += classifier_quality(logits, {batch.labels, count}, classes);
    if (keep) keep->insert(keep->end(), logits.begin(), logits.end());
  }
  return quality;
}

}  // namespace tutti
