#pragma once
// Whole training steps of a rank, as a run makes them, on a team of one thread and on a device.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/plan/device_training.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/plan/run/stream_executor.h"
#include "tutti/train/step/training_step.h"

namespace tutti::test {

/// The job that is trained: one rank with some replicas, each with some micro-batches in a step.
struct StepCase {
  train::TrainingGraphSpec training;
  int replicas = 1, accumulate = 1;
};

inline train::TrainingStepSpec step_spec(const StepCase& c, int64_t noise_every = 0) {
  train::TrainingStepSpec spec{
      .map = exchange::ReplicaMap(c.replicas, 1, 0), .accumulate = c.accumulate, .seed = 3};
  spec.network.training = c.training;
  spec.network.training.split = {.threads = 1, .tile_bytes = size_t{1} << 60, .slabs = 1};
  spec.network.plan.layout = config::ActivationLayout::last;
  spec.network.plan.tile_bytes = int64_t{1} << 60;
  spec.network.plan.measure = false;
  spec.network.warns = false;
  spec.noise.every = noise_every;
  return spec;
}

/// The residual network of that depth on small images; the number of its steps is that of large
/// ones.
inline train::TrainingGraphSpec residual_net(const std::string& name) {
  train::TrainingGraphSpec spec;
  spec.model.name = name;
  spec.model.input = {3, 8, 8};
  spec.model.batch = 2;
  spec.model.classes = 10;
  spec.model.width = 4;
  spec.optimizer = kMomentum;
  return spec;
}

/// Steps on batches of noise, a different one for each micro-batch and step.
class Steps {
 public:
  Steps(const StepCase& c, const backend::Backend& backend, int64_t noise_every = 0)
      : communicator_(comm::make_single_communicator()), spec_(step_spec(c, noise_every)),
        step(spec_, backend, *communicator_) {
    for (const models::GraphInput& input : step.network().inputs)
      tensors_.emplace_back(step.network().training.desc(input.value).bytes());
    step.start();
  }

  /// Fills the batch of a micro-batch.
  std::vector<void*> batch(int s, int local) {
    Rng rng(static_cast<uint64_t>(100 * s + local), Purpose::test, 0);
    std::vector<void*> batch;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const TensorDesc& desc = step.network().training.desc(step.network().inputs[i].value);
      const auto count = static_cast<size_t>(desc.elements());
      for (size_t e = 0; e < count; ++e) {
        if (desc.dtype == DType::i32)
          tensors_[i].as<int32_t>()[e] = static_cast<int32_t>(rng.below(most_));
        else if (desc.dtype == DType::bf16)
          tensors_[i].as<bf16>()[e] = bf16(rng.normal());
        else
          tensors_[i].as<float>()[e] = rng.normal();
      }
      batch.push_back(tensors_[i].data());
    }
    return batch;
  }

  /// Makes a step without waiting, if the executor runs ahead. The rate changes from step to step.
  void make(int s, const std::function<void()>& before_run = {}) {
    step.begin(s, 0.05f / static_cast<float>(s + 1));
    for (int local = 0; local < step.summed().local_count(); ++local) {
      if (before_run) before_run();
      if (step.runs_ahead()) {
        take(plan::Until::room);
        step.begin_run(step.micro_batch(local), batch(s, local));
      } else {
        losses.push_back(step.run(local, batch(s, local)));
      }
    }
    step.update();
  }
  void take(plan::Until until) {
    while (const auto end = step.next_end(until)) {
      losses.push_back(end->loss);
      ends.push_back(*end);
    }
  }
  /// Makes several and settles.
  void make_all(int first, int last) {
    for (int s = first; s < last; ++s) make(s);
    step.settle();
    if (step.runs_ahead()) take(plan::Until::all);
  }

  /// All that training keeps.
  std::vector<std::vector<std::byte>> kept() const {
    const train::Weights& weights = step.weights();
    const plan::Variables& variables = weights.variables();
    std::vector<std::vector<std::byte>> all{
        bytes_of(weights.parameters(), variables.parameter_bytes),
        bytes_of(weights.tables(), variables.table_bytes),
        bytes_of(weights.state(), variables.trained_bytes * variables.state_kinds.size())};
    for (int r = 0; r < step.map().local_count(); ++r)
      all.push_back(bytes_of(weights.statistics(r), variables.statistic_bytes));
    return all;
  }
  const train::TrainingStepSpec& spec() const { return spec_; }
  plan::StreamExecutor& stream() { return dynamic_cast<plan::StreamExecutor&>(step.executor()); }

 private:
  const std::unique_ptr<comm::Communicator> communicator_;
  const train::TrainingStepSpec spec_;

 public:
  train::TrainingStep step;
  std::vector<float> losses;
  std::vector<train::MicroBatchEnd> ends;

 private:
  std::vector<device::Buffer> tensors_;
  uint32_t most_ = 2;  // class numbers and rows are below that
};

/// Trains on devices of which another call fails each time, counted from `first`, every `stride`-th
/// of all that there are in `steps` steps. Returns how many have failed. A call that fails is a
/// DeviceError, and nothing of the device is kept after it.
inline int64_t failing_calls(const StepCase& c, int steps, int64_t first, int64_t stride) {
  for (int64_t n = first, failed = 0;; n += stride, ++failed) {
    const backend::CpuBackend host;
    const auto device = device::make_emulated_device(
        {.seed = 1, .failing_call = n, .functions = backend::own_functions()});
    device->time_limit = 20;
    bool fails = false;
    try {
      const GpuBackend backend(*device, host, GpuKernels::own_only);
      Steps(c, backend).make_all(0, steps);
    } catch (const DeviceError&) {
      fails = true;
    }
    EXPECT_EQ(device->counts().bytes, 0u) << "call " << n;
    if (!fails) return failed;
  }
}

}  // namespace tutti::test
