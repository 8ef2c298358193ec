// plan.memory: recomputing results changes no bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/train/step/step_settings.h"

namespace tutti::train {
namespace {

struct LimitedRun {
  models::ModelSpec model;
  size_t memory = 0;
  int threads = 2, accumulate = 1, stages = 1, tensor = 1, parts = 1;
};

struct LimitedResult {
  std::map<std::string, std::vector<float>> variables;  ///< includes statistics
  std::vector<float> losses;
  plan::PlannedMemory memory;
  size_t executor_bytes = 0;
  plan::Recomputed recomputed;
  std::vector<std::string> again;  ///< names of the recomputed steps
};

models::ModelSpec gpt2_of(DType activations, float dropout) {
  return {.name = "gpt2",
          .input = {64},
          .input_field = "tokens",
          .target_field = "next",
          .batch = 4,
          .classes = 512,
          .width = 320,  // weights are large enough to divide bands
          .dropout = dropout,
          .attention_dropout = dropout,
          .depth = 3,
          .heads = 4,
          .activations = activations};
}

models::ModelSpec resnet_of(DType activations) {
  return {.name = "resnet20", .batch = 8, .activations = activations};
}

class LimitedBatch {
 public:
  LimitedBatch(const Network& network, int64_t classes, uint64_t micro_batch) {
    for (const models::GraphInput& input : network.inputs) {
      const TensorDesc& desc = network.training.desc(input.value);
      device::Buffer& buffer = buffers_.emplace_back(desc.bytes());
      Rng rng(7, Purpose::test, micro_batch);
      for (size_t i = 0; i < static_cast<size_t>(desc.elements()); ++i)
        if (desc.dtype == DType::i32)
          buffer.as<int32_t>()[i] = static_cast<int32_t>(rng.below(static_cast<uint32_t>(classes)));
        else if (desc.dtype == DType::bf16)
          buffer.as<bf16>()[i] = bf16(rng.normal());
        else
          buffer.as<float>()[i] = rng.normal();
      tensors_.push_back(buffer.data());
    }
  }
  std::span<void* const> tensors() const { return tensors_; }

 private:
  std::vector<device::Buffer> buffers_;
  std::vector<void*> tensors_;
};

LimitedResult train_limited(const LimitedRun& run) {
  LimitedResult result;
  const int ranks = run.stages * run.tensor * run.parts;
  const std::vector<int64_t> spatial(run.parts > 1 ? 1 : 0, run.parts);
  comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
    const split::PartGrid grid =
        run.tensor > 1 ? split::PartGrid::of_tensors(run.tensor, ranks, communicator.rank())
                       : split::PartGrid(spatial, 1, ranks, communicator.rank(), run.stages);
    TrainingStepSpec spec{.map = exchange::ReplicaMap(grid.groups(), grid.groups(), grid.group()),
                          .grid = grid,
                          .accumulate = run.accumulate,
                          .seed = 3};
    spec.network.training.model = run.model;
    spec.network.training.optimizer.momentum = 0.9;
    spec.network.training.split.threads = run.threads;
    spec.network.plan.layout = config::ActivationLayout::last;
    spec.network.plan.measure = false;
    spec.network.plan.memory = static_cast<int64_t>(run.memory);
    const backend::CpuBackend backend;
    TrainingStep step(spec, backend, communicator);
    step.start();
    for (int s = 0; s < 2; ++s) {
      step.begin(s, 0.05f);
      for (int micro_batch = 0; micro_batch < run.accumulate; ++micro_batch) {
        const LimitedBatch batch(step.network(), run.model.classes > 0 ? run.model.classes : 10,
                                 static_cast<uint64_t>(10 * s + micro_batch));
        const float loss = step.run(micro_batch, batch.tensors());
        if (communicator.rank() + 1 == ranks) result.losses.push_back(loss);
      }
      step.update();
    }
    step.settle();
    const std::vector<keep::NamedTensor> model = keep::materialise(
        step.weights().model_tensors(step.weights().parameters(), step.weights().statistics(0)));
    if (communicator.rank() != 0) return;
    for (const keep::NamedTensor& tensor : model) {
      const auto* x = reinterpret_cast<const float*>(tensor.bytes.data());
      result.variables[tensor.name].assign(x, x + tensor.desc.elements());
    }
    const plan::Plan& plan = step.network().training;
    result.memory = plan::planned_memory(plan);
    result.executor_bytes = step.executor().memory_bytes();
    result.recomputed = plan.recomputed;
    for (const plan::PlanBand& band : plan.bands)
      for (const plan::Step& s : band.steps)
        if (band.repeats >= 0) result.again.push_back(s.name);
  });
  return result;
}

/// Trains with all the memory it needs, and with that minus `share_of_results` of the results.
void expect_same_bits(LimitedRun run, double share_of_results) {
  run.memory = size_t{1} << 40;  // a limit counts a checkpoint's copy, too
  const LimitedResult all = train_limited(run);
  EXPECT_TRUE(all.again.empty());
  run.memory = all.memory.total() -
               static_cast<size_t>(static_cast<double>(all.memory.results) * share_of_results);
  const LimitedResult some = train_limited(run);
  EXPECT_LE(some.memory.total(), run.memory);
  EXPECT_EQ(some.executor_bytes, some.memory.results + some.memory.scratch);
  EXPECT_GT(some.recomputed.results, 0);
  EXPECT_GT(some.recomputed.flop, 0);
  EXPECT_FALSE(some.again.empty());
  EXPECT_EQ(some.losses, all.losses);
  EXPECT_EQ(some.variables, all.variables);
}

TEST(Recompute, ATransformersGradientsHaveTheSameBits) {
  expect_same_bits({.model = gpt2_of(DType::f32, 0.1f)}, 0.4);
  expect_same_bits({.model = gpt2_of(DType::bf16, 0.1f)}, 0.4);
}

TEST(Recompute, ABatchNormsStatisticsAreOfOnePass) {
  expect_same_bits({.model = resnet_of(DType::f32)}, 0.3);
  expect_same_bits({.model = resnet_of(DType::bf16)}, 0.3);
}

/// With few samples the team shares the attention heads, in a band of its own.
TEST(Recompute, WhatTheTeamSharesHasTheSameBits) {
  LimitedRun run{.model = gpt2_of(DType::f32, 0.1f)};
  run.model.batch = 3;
  expect_same_bits(run, 0.4);
}

TEST(Recompute, ANetworkOfManyMicroBatchesHasTheSameBits) {
  expect_same_bits({.model = gpt2_of(DType::f32, 0.1f), .accumulate = 3}, 0.4);
}

TEST(Recompute, StagesAndSlicesOfLayersHaveTheSameBits) {
  expect_same_bits({.model = gpt2_of(DType::f32, 0.1f), .accumulate = 3, .stages = 2}, 0.2);
  expect_same_bits({.model = gpt2_of(DType::f32, 0.1f), .tensor = 2}, 0.2);
}

/// Rows received from others are kept; sums over samples are computed once, by all ranks together.
TEST(Recompute, PartsOfSamplesHaveTheSameBits) {
  expect_same_bits({.model = resnet_of(DType::f32), .parts = 2}, 0.3);
}

TEST(Recompute, TheErrorNamesTheLeastThatIsPossible) {
  LimitedRun run{.model = gpt2_of(DType::f32, 0)};
  run.memory = size_t{1} << 20;
  const std::string text = message_of<ConfigError>([&] { train_limited(run); });
  const size_t at = text.find("plan.memory: a rank needs ");
  ASSERT_NE(at, std::string::npos) << text;
  const double least = std::stod(text.substr(at + 26));
  run.memory = static_cast<size_t>((least + 0.1) * (1 << 20));
  EXPECT_NO_THROW(train_limited(run)) << text;
}

/// Returns the copies that a job of one rank with 4 replicas holds, as computed by train, its
/// rehearsal and `tutti plan`.
HeldCopies held_by(const config::RunConfig& config) {
  return network_of_step(step_spec(config, {}, exchange::ReplicaMap(4, 1, 0), {}, true), 1, 0).held;
}

TEST(Recompute, WhatIsHeldIsThatOfTheStep) {
  config::RunConfig config;
  config.batch.accumulate = 2;
  EXPECT_EQ(held_by(config).replicas, 1);
  const int together = held_by(config).gradients;
  EXPECT_EQ(together, comm::plan_slots(8, {0, 8}).slots);
  EXPECT_EQ(held_by(config).batches, 2);

  config.sync.scheme = "local:8";
  EXPECT_EQ(held_by(config).replicas, 4);
  EXPECT_LT(held_by(config).gradients, together) << "of one replica at a time";
  config.replay.spill = "elsewhere";
  EXPECT_EQ(held_by(config).replicas, 1);

  config.sync.scheme = "ps:async";
  EXPECT_EQ(held_by(config).replicas, 1);
  EXPECT_LT(held_by(config).gradients, together) << "of one worker at a time";
}

/// If the second compilation chooses another layout, the evaluation and every rank use it, too.
TEST(Recompute, BothSidesReadTheVariablesAlike) {
  const auto compiled = [](size_t memory, int ranks, const std::filesystem::path& tuning) {
    std::vector<std::unique_ptr<Network>> networks(static_cast<size_t>(ranks));
    comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
      NetworkSpec spec;
      spec.training.model = resnet_of(DType::f32);
      spec.training.split.grid = split::PartGrid({}, 1, ranks, communicator.rank());
      spec.plan.measure = !tuning.empty();
      spec.tuning_file = tuning;
      spec.plan.memory = static_cast<int64_t>(memory);
      networks[static_cast<size_t>(communicator.rank())] =
          compile_network(spec, backend::CpuBackend(), communicator);
    });
    return networks;
  };
  const size_t all = plan::planned_memory(compiled(size_t{1} << 40, 1, {})[0]->training).total();
  const auto folder = testing::TempDir() + "tutti_no_tuning";
  for (const double share : {1.0, 0.95, 0.9, 0.85}) {
    const auto limit = static_cast<size_t>(share * static_cast<double>(all));
    for (const auto& network : compiled(limit, 2, {})) {
      const plan::Plan &training = network->training, &evaluation = network->evaluation.plan;
      EXPECT_TRUE(plan::fits_memory(training));
      EXPECT_EQ(training.layout, evaluation.layout);
      for (const graph::Value p : evaluation.graph.with_role(graph::Role::parameter)) {
        const plan::Variable* trained = training.variables.find_parameter(evaluation.graph[p].name);
        ASSERT_NE(trained, nullptr);
        EXPECT_EQ(evaluation.desc(p).to_string(), trained->desc.to_string());
      }
    }
  }
  (void)compiled(all, 1, folder + "/file");
  EXPECT_FALSE(std::filesystem::exists(folder)) << "it was chosen under a limit";
}

}  // namespace
}  // namespace tutti::train
