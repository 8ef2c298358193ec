#include "tutti/train/evaluator.h"

#include "tutti/data/pipeline.h"

namespace tutti {
namespace {

Shape sample_of(const TensorDesc& desc) {
  return Shape(std::span(desc.shape.begin() + 1, desc.shape.end()));
}

/// Rows of the last dimension, one after the other.
void to_plain(const TensorDesc& desc, const float* x, std::vector<float>& plain) {
  const int rank = desc.shape.rank();
  std::array<std::vector<int64_t>, Shape::kMaxRank> offsets;
  for (int d = 0; d < rank; ++d) offsets[static_cast<size_t>(d)] = desc.layout.terms(desc.shape, d);
  const std::vector<int64_t>& last = offsets[static_cast<size_t>(rank - 1)];
  plain.clear();
  std::array<int64_t, Shape::kMaxRank> index{};
  for (int64_t row = 0; row < desc.elements() / std::ssize(last); ++row) {
    int64_t from = 0;
    for (int d = 0; d < rank - 1; ++d)
      from += offsets[static_cast<size_t>(d)][static_cast<size_t>(index[static_cast<size_t>(d)])];
    for (const int64_t offset : last) plain.push_back(x[from + offset]);
    for (int d = rank - 2; d >= 0 && ++index[static_cast<size_t>(d)] == desc.shape[d]; --d)
      index[static_cast<size_t>(d)] = 0;
  }
}

}  // namespace

Evaluator::Evaluator(const EvaluationNetwork& network, const Backend& backend,
                     const data::Dataset& dataset, const data::SampleWriter& writer,
                     std::span<const std::shared_ptr<const Metric>> metrics)
    : network_(network), executor_(network.plan, backend), dataset_(dataset), writer_(writer),
      metrics_(metrics.begin(), metrics.end()), plain_(network.predictions.size()) {}

void Evaluator::bind(void* parameters, void* statistics) {
  executor_.bind({.parameters = parameters, .statistics = statistics});
}

const float* Evaluator::prediction(size_t output) {
  const Value value = network_.predictions[output];
  const TensorDesc& desc = network_.plan.desc(value);
  const auto* x = static_cast<const float*>(executor_.result(value));
  if (desc.layout.is_plain() || desc.shape.rank() == 2) return x;
  to_plain(desc, x, plain_[output]);
  return plain_[output].data();
}

template <class Each>
void Evaluator::for_batches(const data::Range& range, int readers, Each each) {
  data::PipelineSpec spec;
  spec.threads = readers;
  data::Pipeline pipeline(
      dataset_, writer_, std::make_unique<data::EvaluationOrder>(range, network_.plan.batch), spec);
  executor_.pack();
  while (pipeline.remaining() > 0) {
    const data::Batch& batch = pipeline.next();
    for (size_t i = 0; i < network_.inputs.size(); ++i)
      executor_.bind_input(network_.inputs[i].value, batch.tensors[i]);
    executor_.run({});
    each(batch);
  }
}

Quality Evaluator::run(const data::Range& range, int readers,
                       std::vector<std::vector<float>>* keep) {
  if (keep) keep->resize(network_.predictions.size());
  std::vector<Judged> judged(network_.predictions.size());
  for (size_t o = 0; o < judged.size(); ++o) {
    judged[o].prediction.sample = sample_of(network_.plan.desc(network_.predictions[o]));
    judged[o].target.sample = sample_of(network_.targets[network_.target_of[o]].desc);
  }
  Quality quality(metrics_);
  for_batches(range, readers, [&](const data::Batch& batch) {
    for (size_t o = 0; o < judged.size(); ++o) {
      judged[o].prediction.data = prediction(o);
      judged[o].target.data = batch.tensors[network_.inputs.size() + network_.target_of[o]];
    }
    quality.add(judged, batch.id.count);
    for (size_t o = 0; keep && o < judged.size(); ++o)
      (*keep)[o].insert((*keep)[o].end(), judged[o].prediction.numbers(0),
                        judged[o].prediction.numbers(batch.id.count));
  });
  return quality;
}

void Evaluator::predict(const data::Range& range, int readers, const TakePredictions& take) {
  for_batches(range, readers, [&](const data::Batch& batch) {
    for (size_t o = 0; o < network_.predictions.size(); ++o) take(o, prediction(o), batch.id.count);
  });
}

}  // namespace tutti
