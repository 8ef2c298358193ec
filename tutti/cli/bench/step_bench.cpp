#include "tutti/cli/bench/step_bench.h"

#include <algorithm>
#include <chrono>

#include "tutti/base/numeric/normals.h"
#include "tutti/models/registry.h"

namespace tutti::cli {
namespace {

constexpr uint64_t kSeed = 1;
constexpr float kRate = 0.01f;  // low enough that random labels never give a NaN, whose arithmetic
                                // may take another time

/// Fills in normal numbers, or class numbers below `classes`.
void fill(const TensorDesc& desc, device::Buffer& tensor, int replica, int64_t classes) {
  const auto count = static_cast<size_t>(desc.layout.storage_elements(desc.shape));
  const NormalStream stream{kSeed, Purpose::test, static_cast<uint64_t>(replica)};
  if (desc.dtype == DType::f32) return fill_normals(stream, 0, tensor.as<float>().first(count));
  if (desc.dtype == DType::bf16) {
    std::vector<float> numbers(count);
    fill_normals(stream, 0, numbers);
    for (size_t i = 0; i < count; ++i) tensor.as<bf16>()[i] = bf16(numbers[i]);
    return;
  }
  for (size_t i = 0; i < count; ++i)
    tensor.as<int32_t>()[i] = static_cast<int32_t>((static_cast<int64_t>(i) + replica) % classes);
}

/// Fills in rows of tables, equally likely; `rows`: tables' sizes by element of a sample.
void fill_rows(device::Buffer& tensor, int replica, const std::vector<int64_t>& rows) {
  Rng rng(kSeed, Purpose::test, static_cast<uint64_t>(replica));
  const std::span<int32_t> numbers = tensor.as<int32_t>();
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<int32_t>(rng.below(static_cast<uint32_t>(rows[i % rows.size()])));
}

}  // namespace

StepBench::StepBench(const train::NetworkSpec& spec, const exchange::ExchangeSettings& exchange,
                     const backend::Backend& backend, const split::PartGrid& grid,
                     comm::Communicator& communicator)
    : grid_(grid), step_({.network = spec,
                          .exchange = exchange,
                          .map = exchange::ReplicaMap(grid.groups(), grid.groups(), grid.group()),
                          .grid = grid,
                          .seed = kSeed,
                          .steps_compared = kStepsCompared},
                         backend, communicator) {
  const train::EvaluationNetwork& evaluation = network().evaluation;
  const int64_t outputs = evaluation.plan.desc(evaluation.predictions.front()).shape[1];
  const std::vector<models::ModelField> fields = models::completed(spec.training.model).inputs;
  for (const models::GraphInput& input : network().inputs) {
    const TensorDesc& desc = network().training.desc(input.value);
    device::Buffer& tensor = tensors_.emplace_back(desc.bytes());
    const auto known = std::ranges::find(fields, input.field, &models::ModelField::name);
    if (known != fields.end() && !known->rows.empty())
      fill_rows(tensor, grid.group(), known->rows);
    else
      fill(desc, tensor, grid.group(), outputs);
    batch_.push_back(tensors_.back().data());
  }
  step_.start();
}

double StepBench::step() {
  const auto start = std::chrono::steady_clock::now();
  step_.begin(steps_++, kRate);
  if (step_.runs_ahead())
    step_.begin_run(step_.micro_batch(0), batch_);
  else
    step_.run(0, batch_);
  const auto computed = std::chrono::steady_clock::now();
  step_.update();
  while (step_.next_end(plan::Until::all)) {  // it is not over before
  }
  const auto end = std::chrono::steady_clock::now();
  update_seconds_ = std::chrono::duration<double>(end - computed).count();
  return std::chrono::duration<double>(end - start).count();
}

double StepBench::flop_per_image() const {
  return network().training.graph.flop() * grid_.parts() /
         static_cast<double>(network().training.batch);
}

}  // namespace tutti::cli
