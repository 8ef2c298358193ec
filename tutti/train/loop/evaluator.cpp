#include "tutti/train/loop/evaluator.h"

#include <algorithm>

#include "tutti/train/network/plain_copy.h"

namespace tutti::train {
namespace {

Shape sample_of(const TensorDesc& desc) {
  return Shape(std::span(desc.shape.begin() + 1, desc.shape.end()));
}

Shape sample_of(const EvaluationNetwork& network, size_t output) {
  return sample_of(network.plan.desc(network.predictions[output]));
}

/// Collects the scores of all ranks, in the order of ranks.
void gather(comm::Communicator& communicator, std::vector<float>& scores) {
  const std::vector<size_t> counts = communicator.allgather_value(scores.size());
  const size_t most = *std::ranges::max_element(counts);
  if (most == 0) return;
  scores.resize(most);
  std::vector<float> all(most * counts.size());
  communicator.allgather(std::as_bytes(std::span(scores)), std::as_writable_bytes(std::span(all)));
  scores.clear();
  for (size_t r = 0; r < counts.size(); ++r)
    scores.insert(scores.end(), all.begin() + static_cast<std::ptrdiff_t>(r * most),
                  all.begin() + static_cast<std::ptrdiff_t>(r * most + counts[r]));
}

}  // namespace

void put_together(Quality& quality, comm::Communicator& communicator) {
  communicator.sum(quality.sums());
  for (Quality::Scores& scores : quality.scores())
    for (std::vector<float>& of_label : scores) gather(communicator, of_label);
  for (ScoreBins& bins : quality.bins()) communicator.sum(bins.counts());
  quality.settle();
}

Evaluator::Evaluator(const Evaluated& what, std::span<const std::shared_ptr<const Metric>> metrics)
    : what_(what), executor_(plan::make_executor(what.network.plan, what.backend)),
      parts_(what.communicator, what.network.grid, what.network.plan, *executor_),
      metrics_(metrics.begin(), metrics.end()), plain_(what.network.predictions.size()),
      restored_(plain_.size()), restored_target_(plain_.size()), shifted_(plain_.size()),
      shifted_target_(plain_.size()) {
  executor_->set_exchanges(parts_);
  if (what.losses) losses_ = plan::make_executor(what.network.own_losses->plan, what.backend);
}

void Evaluator::bind(const plan::ReplicaState& model) {
  executor_->bind(model);
  if (losses_) losses_->bind(model);
}

void Evaluator::add_losses(int64_t samples, int readers, Quality& quality) {
  const split::PartGrid& grid = what_.network.grid;
  const OwnLosses& own = *what_.network.own_losses;
  const data::Range mine = data::evaluation_range(samples, grid.group(), grid.groups());
  data::Pipeline pipeline(what_.dataset, *what_.losses,
                          std::make_unique<data::EvaluationOrder>(mine, 1), {.threads = readers});
  losses_->pack();
  for (int64_t seen = 0; pipeline.remaining() > 0; ++seen) {
    const data::Batch& batch = pipeline.next();
    if (seen % grid.parts() != grid.part()) continue;
    for (size_t i = 0; i < own.inputs.size(); ++i)
      losses_->bind_input(own.inputs[i].value, batch.tensors[i]);
    losses_->run({});
    double sum = 0;
    for (const graph::Value loss : own.losses)
      sum += *static_cast<const float*>(losses_->result(loss));
    quality.add_losses(sum);
  }
}

const float* Evaluator::prediction(size_t output) {
  const graph::Value value = what_.network.predictions[output];
  const TensorDesc& desc = what_.network.plan.desc(value);
  const auto* x = static_cast<const float*>(executor_->result(value));
  if (desc.layout.is_plain() || desc.shape.rank() == 2) return x;
  to_plain(desc, x, plain_[output]);
  return plain_[output].data();
}

namespace {

/// Passes each of `count` samples of `y` back through its steps.
const float* back_through(const data::ValueFunction& steps, data::Origin origin, const float* y,
                          int64_t count, int64_t numbers, std::vector<float>& memory) {
  memory.assign(y, y + count * numbers);
  for (int64_t i = 0; i < count; ++i)
    steps.invert(
        std::span(memory).subspan(static_cast<size_t>(i * numbers), static_cast<size_t>(numbers)),
        origin);
  return memory.data();
}

}  // namespace

const data::ValueFunction* Evaluator::steps_back(size_t output) const {
  const EvaluationNetwork& network = what_.network;
  if (output >= network.target_of.size() || !network.of_data[output]) return nullptr;
  const size_t target = network.target_of[output];
  const data::ValueFunction& steps = what_.targets.empty()
                                         ? what_.writer.values(network.inputs.size() + target)
                                         : what_.targets[target];
  return steps.has_inverse() ? &steps : nullptr;
}

const float* Evaluator::restored(size_t output, const float* y, int64_t count) {
  const data::ValueFunction* const steps = steps_back(output);
  return steps ? back_through(*steps, data::Origin::of_data, y, count,
                              sample_of(what_.network, output).elements(), restored_[output])
               : y;
}

bool Evaluator::is_taken(size_t output, Metric::Takes numbers) const {
  return std::ranges::any_of(metrics_, [&](const auto& metric) {
    return metric->output() == output && metric->takes() == numbers;
  });
}

void Evaluator::judge(std::vector<Judged>& outputs, const data::Batch& batch, bool keep) {
  using data::Origin;
  const EvaluationNetwork& network = what_.network;
  for (size_t o = 0; o < outputs.size(); ++o) {
    Judged& one = outputs[o];
    const float* const y = prediction(o);
    const auto* const t = static_cast<const float*>(
        batch.tensors[network.inputs.size() + network.target_of[o]]);  // or i32, without steps
    one.prediction.data = y;
    one.target.data = t;
    const data::ValueFunction* const steps = steps_back(o);
    if (!steps) continue;
    one.learned = one.prediction;
    one.learned_target = one.target;
    const auto back = [&](Origin origin, const SampleTensor& x, std::vector<float>& memory) {
      return back_through(*steps, origin, static_cast<const float*>(x.data), batch.id.count,
                          x.sample.elements(), memory);
    };
    if (is_taken(o, Metric::Takes::differences)) {
      one.shifted = {back(Origin::learned_zero, one.learned, shifted_[o]), one.learned.sample};
      one.shifted_target = {back(Origin::learned_zero, one.learned_target, shifted_target_[o]),
                            one.learned_target.sample};
    }
    const bool in_units = is_taken(o, Metric::Takes::of_data);
    if (in_units || keep) one.prediction.data = back(Origin::of_data, one.learned, restored_[o]);
    if (in_units) one.target.data = back(Origin::of_data, one.learned_target, restored_target_[o]);
  }
}

std::vector<Judged> Evaluator::judged() const {
  const EvaluationNetwork& network = what_.network;
  std::vector<Judged> list(network.target_of.size());
  for (size_t o = 0; o < list.size(); ++o) {
    list[o].prediction.sample = sample_of(network, o);
    list[o].target.sample = sample_of(network.targets[network.target_of[o]].desc);
  }
  return list;
}

void Evaluator::pass(int64_t samples, int readers, const Look& look) {
  const EvaluationNetwork& network = what_.network;
  const data::Range mine =
      data::evaluation_range(samples, network.grid.group(), network.grid.groups());
  if (network.batch().empty()) return pass_on(mine.size());
  data::Pipeline pipeline(what_.dataset, what_.writer,
                          std::make_unique<data::EvaluationOrder>(mine, network.plan.batch),
                          {.threads = readers});
  executor_->pack();
  int64_t passes = 0;
  while (pipeline.remaining() > 0) {
    const data::Batch& batch = pipeline.next();
    for (size_t i = 0; i < network.inputs.size(); ++i)
      executor_->bind_input(network.inputs[i].value, batch.tensors[i]);
    executor_->run({});
    look(batch);
    ++passes;
  }
  for (const int64_t most = passes_of_all(samples); passes < most; ++passes) run_for_others();
}

/// For a stage that reads no part of a sample.
void Evaluator::pass_on(int64_t samples) {
  executor_->pack();
  for (int64_t done = 0; done < samples; done += what_.network.plan.batch) executor_->run({});
}

/// If ranks look rows up for each other, each runs as often as the one with the most samples.
int64_t Evaluator::passes_of_all(int64_t samples) const {
  const EvaluationNetwork& network = what_.network;
  int64_t most = 0;
  for (int group = 0; network.shares_tables && group < network.grid.groups(); ++group) {
    const data::Range range = data::evaluation_range(samples, group, network.grid.groups());
    most = std::max(most, (range.size() + network.plan.batch - 1) / network.plan.batch);
  }
  return most;
}

/// Runs a pass without samples of its own, to answer lookups that others wait for.
void Evaluator::run_for_others() {
  std::vector<device::Buffer> nothing;
  for (const models::GraphInput& input : what_.network.inputs) {
    nothing.emplace_back(what_.network.plan.desc(input.value).bytes());
    executor_->bind_input(input.value, nothing.back().data());
  }
  executor_->run({});
}

Quality Evaluator::run(int64_t samples, int readers, std::vector<std::vector<float>>* keep) {
  const EvaluationNetwork& network = what_.network;
  if (keep) keep->resize(network.predictions.size());
  std::vector<Judged> outputs = judged();
  Quality quality(metrics_, samples);
  int64_t seen = 0;
  pass(samples, readers, [&](const data::Batch& batch) {
    judge(outputs, batch, keep != nullptr);
    // All parts have whole predictions, and each measures some of them.
    for (int64_t i = 0; i < batch.id.count && !outputs.empty(); ++i, ++seen)
      if (seen % network.grid.parts() == network.grid.part()) quality.add(outputs, i);
    for (size_t o = 0; keep && o < network.predictions.size(); ++o) {
      const float* const y = o < outputs.size()
                                 ? static_cast<const float*>(outputs[o].prediction.data)
                                 : restored(o, prediction(o), batch.id.count);
      (*keep)[o].insert((*keep)[o].end(), y, y + batch.id.count * sample_of(network, o).elements());
    }
  });
  if (losses_) add_losses(samples, readers, quality);
  put_together(quality, what_.communicator);
  return quality;
}

void Evaluator::predict(int64_t samples, int readers, const TakePredictions& take) {
  pass(samples, readers, [&](const data::Batch& batch) {
    for (size_t o = 0; o < what_.network.predictions.size(); ++o)
      take(o, restored(o, prediction(o), batch.id.count), batch.id.count);
  });
}

}  // namespace tutti::train
