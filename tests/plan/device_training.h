#pragma once
// A small network that is trained on an emulated device, and on a team of one thread.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/plan/plan_run.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/gpu/gpu_backend.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/device/emulated/emulated_device.h"
#include "tutti/plan/run/executor.h"
#include "tutti/train/network/weights.h"

namespace tutti::test {

using backend::GpuBackend, backend::GpuKernels;

constexpr int64_t kBatch = 6, kClasses = 10;
constexpr int kSteps = 3;

inline train::TrainingGraphSpec lenet(DType activations,
                                      const config::OptimizerSection& optimizer) {
  const auto layer = [](const std::string& type,
                        std::vector<std::pair<std::string, models::LayerValue>> keys) {
    keys.insert(keys.begin(), {"type", type});
    return models::LayerTable{keys};
  };
  const std::string relu = "relu";
  train::TrainingGraphSpec spec;
  spec.model.name = "layers";
  spec.model.input = {1, 12, 12};
  spec.model.classes = kClasses;
  spec.model.batch = kBatch;
  spec.model.activations = activations;
  spec.model.layers = {
      layer("conv", {{"channels", int64_t{6}}, {"kernel", int64_t{3}}, {"bias", false}}),
      layer("batch_norm", {{"activation", relu}}),
      layer("pool", {{"kernel", int64_t{2}}}),
      layer("conv", {{"channels", int64_t{8}}, {"kernel", int64_t{3}}, {"activation", relu}}),
      layer("pool", {{"kernel", int64_t{3}}}),
      layer("dropout", {{"probability", 0.25}}),
      layer("dense", {{"outputs", int64_t{16}}, {"activation", relu}}),
      layer("dense", {})};
  spec.optimizer = optimizer;
  spec.bucket_bytes = 1 << 10;
  return spec;
}

inline train::TrainingGraph lenet_with_norm(DType activations,
                                            const config::OptimizerSection& optimizer) {
  return train::make_training_graph(lenet(activations, optimizer));
}

inline train::TrainingGraph lenet_without_norm(const config::OptimizerSection& optimizer) {
  train::TrainingGraphSpec spec = lenet(DType::f32, optimizer);
  spec.model.layers.erase(spec.model.layers.begin() + 1);
  return train::make_training_graph(spec);
}

inline const config::OptimizerSection kMomentum{.momentum = 0.9, .weight_decay = 1e-4};

inline plan::PlanOptions whole_batch() {
  return {.threads = 1, .layout = "last", .tile_bytes = size_t{1} << 60, .measure = false};
}

/// An emulated device with its backend, and the processor's.
struct Emulated {
  backend::CpuBackend host;
  std::unique_ptr<device::Device> device;
  GpuBackend backend;
  explicit Emulated(const device::EmulatedOptions& options,
                    GpuKernels kernels = GpuKernels::host_only)
      : device(device::make_emulated_device(options)), backend(*device, host, kernels) {}
};

/// Batches of noise, a different one for each step.
class Batches {
 public:
  Batches(const train::TrainingGraph& training, const plan::Plan& plan)
      : images_(training.inputs[0].value), labels_(training.inputs[1].value) {
    const TensorDesc& desc = plan.desc(images_);
    for (int step = 0; step < kSteps; ++step) {
      Rng rng(static_cast<uint64_t>(step), Purpose::test, 0);
      device::Buffer& images = all_images_.emplace_back(desc.bytes());
      for (int64_t i = 0; i < desc.elements(); ++i) {
        const float x = rng.normal();
        if (desc.dtype == DType::bf16)
          images.as<bf16>()[static_cast<size_t>(i)] = bf16(x);
        else
          images.as<float>()[static_cast<size_t>(i)] = x;
      }
      std::vector<int32_t>& labels = all_labels_.emplace_back(kBatch);
      for (int32_t& label : labels) label = static_cast<int32_t>(rng.below(kClasses));
    }
  }
  void bind(plan::Executor& executor, int step) const {
    executor.bind_input(images_, all_images_[static_cast<size_t>(step)].data());
    executor.bind_input(labels_, all_labels_[static_cast<size_t>(step)].data());
  }

 private:
  graph::Value images_, labels_;
  std::vector<device::Buffer> all_images_;
  std::vector<std::vector<int32_t>> all_labels_;
};

/// Training of two replicas, which have statistics of their own.
struct Training {
  const train::TrainingGraph& training;
  plan::Plan plan;
  train::Weights weights;
  device::Buffer gradients;
  Batches batches;
  std::unique_ptr<plan::Executor> executor;
  std::vector<float> losses;

  Training(const train::TrainingGraph& of, const backend::Backend& backend)
      : training(of), plan(plan::compile(of.graph, backend, whole_batch())),
        weights(plan.variables, 2), gradients(plan.variables.trained_bytes),
        batches(training, plan), executor(plan::make_executor(plan, backend)) {
    weights.initialise(7);
    plan::ReplicaState replica = weights.replica(0);
    replica.gradients = gradients.data();
    executor->bind(replica);
    executor->set_scalar(training.gradient_scale, 1.0f);
    executor->pack();
  }
  void run(int step, int replica) {
    executor->bind({.statistics = weights.statistics(replica)});
    batches.bind(*executor, step);
    executor->run({.seed = 1, .step = step, .replica = replica});
  }
  void pass(int step, int replica = 0) {
    run(step, replica);
    losses.push_back(*static_cast<const float*>(executor->result(training.losses.front())));
  }
  void update(int step) {
    executor->finish_update();
    executor->set_scalar(training.lr, 0.05f / static_cast<float>(step + 1));
    executor->update({.seed = 1, .step = step});
  }
  void steps() {
    for (int step = 0; step < kSteps; ++step) {
      pass(step);
      update(step);
    }
  }
};

inline std::vector<std::byte> bytes_of(const std::byte* from, size_t bytes) {
  return {from, from + bytes};
}

/// All that training keeps.
struct Trained {
  std::vector<std::byte> parameters, state;
  std::vector<std::vector<std::byte>> statistics;  // by replica
  std::vector<float> losses;
  explicit Trained(const Training& of) : losses(of.losses) {
    const plan::Variables& variables = of.plan.variables;
    parameters = bytes_of(of.weights.parameters(), variables.parameter_bytes);
    state = bytes_of(of.weights.state(), variables.trained_bytes * variables.state_kinds.size());
    for (int replica = 0; replica < 2; ++replica)
      statistics.push_back(bytes_of(of.weights.statistics(replica), variables.statistic_bytes));
  }
  bool operator==(const Trained&) const = default;
};

inline void expect_same(const Trained& got, const Trained& want) {
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_TRUE(got.parameters == want.parameters) << "weights";
  EXPECT_TRUE(got.state == want.state) << "optimizer state";
  EXPECT_TRUE(got.statistics == want.statistics) << "statistics";
}

inline Trained of_a_team(const train::TrainingGraph& training) {
  const backend::CpuBackend backend;
  Training team(training, backend);
  team.steps();
  team.executor->settle();
  return Trained(team);
}

}  // namespace tutti::test
