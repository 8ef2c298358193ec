#include "tutti/cli/step_bench.h"

#include <chrono>

#include "tutti/base/rng.h"

namespace tutti {
namespace {

constexpr uint64_t kSeed = 1;
constexpr float kRate = 0.01f;  // low enough that random labels never end in a NaN, whose
                                // arithmetic may take another time

void fill_images(const TensorDesc& desc, Buffer& images, int rank) {
  Rng rng(kSeed, Purpose::test, static_cast<uint64_t>(rank));
  const auto count = static_cast<size_t>(desc.layout.storage_elements(desc.shape));
  for (size_t i = 0; i < count; ++i) {
    if (desc.dtype == DType::bf16)
      images.as<bf16>()[i] = bf16(rng.normal());
    else
      images.as<float>()[i] = rng.normal();
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

  images_ = Buffer(plan.desc(network_->images).bytes());
  fill_images(plan.desc(network_->images), images_, rank_);
  labels_ = Buffer(plan.desc(network_->labels).bytes());
  const int64_t classes = plan.desc(network_->logits).shape[1];
  for (int64_t i = 0; i < plan.batch; ++i)
    labels_.as<int32_t>()[i] = static_cast<int32_t>((i + rank_) % classes);

  executor_->bind(kParameters, weights_->parameters());
  executor_->bind(kState, weights_->state());
  executor_->bind(kStatistics, weights_->statistics(0));
  executor_->bind(kGradients, exchange_->begin(0));
  executor_->bind_input(network_->images, images_.data());
  executor_->bind_input(network_->labels, labels_.data());
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
