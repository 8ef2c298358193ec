#include "tutti/cli/step_bench.h"

#include <chrono>

#include "tutti/base/rng.h"

namespace tutti {
namespace {

constexpr uint64_t kSeed = 1;
constexpr float kRate = 0.01f;  // low enough that random labels never end in a NaN, whose
                                // arithmetic may take another time

/// Normal numbers, or class numbers below `classes`.
void fill(const TensorDesc& desc, Buffer& tensor, int rank, int64_t classes) {
  Rng rng(kSeed, Purpose::test, static_cast<uint64_t>(rank));
  const auto count = static_cast<size_t>(desc.layout.storage_elements(desc.shape));
  for (size_t i = 0; i < count; ++i) {
    if (desc.dtype == DType::bf16)
      tensor.as<bf16>()[i] = bf16(rng.normal());
    else if (desc.dtype == DType::f32)
      tensor.as<float>()[i] = rng.normal();
    else
      tensor.as<int32_t>()[i] = static_cast<int32_t>((static_cast<int64_t>(i) + rank) % classes);
  }
}

}  // namespace

StepBench::StepBench(const NetworkSpec& spec, const ExchangeSettings& exchange,
                     const Backend& backend, comm::Communicator& communicator)
    : network_(compile_network(spec, backend, communicator)), rank_(communicator.rank()) {
  const Plan& plan = network_->training;
  exchange_ = std::make_unique<StepExchange>(
      communicator, ReplicaMap(communicator.size(), communicator.size(), rank_), *network_,
      exchange, kStepsCompared);
  weights_ = std::make_unique<Weights>(plan.variables, 1, exchange_->parameters(),
                                       exchange_->fills_parameters());
  weights_->initialise(kSeed);
  executor_ = std::make_unique<Executor>(plan, backend);

  const EvaluationNetwork& evaluation = network_->evaluation;
  const int64_t outputs = evaluation.plan.desc(evaluation.predictions.front()).shape[1];
  for (const GraphInput& input : network_->inputs) {
    const TensorDesc& desc = plan.desc(input.value);
    fill(desc, tensors_.emplace_back(desc.bytes()), rank_, outputs);
    executor_->bind_input(input.value, tensors_.back().data());
  }

  executor_->bind(kParameters, weights_->parameters());
  executor_->bind(kState, weights_->state());
  executor_->bind(kStatistics, weights_->statistics(0));
  executor_->bind(kGradients, exchange_->begin(0));
  executor_->set_scalar(network_->lr, kRate);
  executor_->set_scalar(network_->gradient_scale, 1.0f / static_cast<float>(communicator.size()));
  exchange_->attach(*executor_);
  communicator.barrier();  // parameters that another rank has filled are there
  executor_->pack();
}

double StepBench::step() {
  const auto start = std::chrono::steady_clock::now();
  const StepInfo info{
      .seed = kSeed, .step = steps_, .replica = rank_, .batch = network_->training.batch};
  exchange_->begin_step(steps_);
  executor_->run(info);
  exchange_->end_of_backward();
  executor_->update(info);
  exchange_->end_step(*executor_);
  ++steps_;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double StepBench::flop_per_image() const {
  return network_->training.graph.flop() / static_cast<double>(network_->training.batch);
}

}  // namespace tutti
