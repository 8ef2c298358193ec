// Tests that a replica whose layers are on several ranks takes the same steps as one with all
// layers on one rank and the same accumulated micro-batches. Sums within a micro-batch may use
// other tiles, since stages have other bands: so weights agree up to rounding, and bitwise where
// tiles are equal.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/patience.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/models/registry.h"
#include "tutti/train/step/training_step.h"

namespace tutti::train {
namespace {

constexpr int kPipelineSteps = 3;

struct PipelineRun {
  models::ModelSpec model;
  int stages = 1, replicas = 1, micro_batches = 4, threads = 1;
  split::PipelineOrder order = split::PipelineOrder::one_f_one_b;
  std::vector<std::string> freeze{};
  int late = -1;  ///< a rank that is slow
};

struct TrainedStages {
  std::map<std::string, std::vector<float>> variables;
  std::vector<double> losses;        ///< by step: the sum over all micro-batches
  std::vector<size_t> memory, kept;  ///< by rank: results; parameters and state
};

/// The tensors of one micro-batch, for any stage.
class StageBatch {
 public:
  StageBatch(const Network& network, int step, int micro_batch) {
    for (const models::GraphInput& input : network.inputs) {
      const TensorDesc& desc = network.training.desc(input.value);
      device::Buffer& buffer = buffers_.emplace_back(desc.bytes());
      uint64_t field = 0;
      for (const char c : input.field) field = field * 31 + static_cast<uint64_t>(c);
      Rng rng(field, Purpose::test, static_cast<uint64_t>(step * 1000 + micro_batch));
      const auto count = static_cast<size_t>(desc.elements());
      for (size_t i = 0; i < count; ++i)
        if (desc.dtype == DType::f32)
          buffer.as<float>()[i] = rng.uniform() - 0.5f;
        else
          buffer.as<int32_t>()[i] = static_cast<int32_t>(rng.uniform() * 10);
      tensors_.push_back(buffer.data());
    }
  }
  std::span<void* const> tensors() const { return tensors_; }

 private:
  std::vector<device::Buffer> buffers_;
  std::vector<void*> tensors_;
};

void collect_variables(const Weights& weights, TrainedStages& trained) {
  for (const keep::NamedTensor& tensor :
       keep::materialise(weights.model_tensors(weights.parameters(), weights.statistics(0)))) {
    const auto* x = reinterpret_cast<const float*>(tensor.bytes.data());
    trained.variables[tensor.name].assign(x, x + tensor.desc.elements());
  }
}

TrainedStages train_stages(const PipelineRun& run) {
  const int ranks = run.stages * run.replicas;
  TrainedStages trained;
  trained.losses.resize(kPipelineSteps);
  trained.memory.resize(static_cast<size_t>(ranks));
  trained.kept.resize(static_cast<size_t>(ranks));
  std::mutex mutex;
  comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
    communicator.set_timeout(kHangSeconds);
    const split::PartGrid grid({}, 1, ranks, communicator.rank(), run.stages);
    TrainingStepSpec spec{.map = exchange::ReplicaMap(run.replicas, grid.groups(), grid.group()),
                          .grid = grid,
                          .accumulate = run.micro_batches,
                          .order = run.order,
                          .seed = 3};
    spec.network.training.model = run.model;
    spec.network.training.optimizer.momentum = 0.9;
    spec.network.training.freeze = run.freeze;
    spec.network.training.split.threads = run.threads;
    spec.network.plan.layout = config::ActivationLayout::last;
    spec.network.plan.measure = false;
    const backend::CpuBackend backend;
    TrainingStep step(spec, backend, communicator);
    step.start();
    for (int s = 0; s < kPipelineSteps; ++s) {
      step.begin(s, 0.05f);
      for (int micro_batch = 0; micro_batch < run.micro_batches; ++micro_batch) {
        if (communicator.rank() == run.late)
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const StageBatch batch(step.network(), s, grid.group() * run.micro_batches + micro_batch);
        const float loss = step.run(micro_batch, batch.tensors());
        const std::scoped_lock lock(mutex);
        trained.losses[static_cast<size_t>(s)] += static_cast<double>(loss);
      }
      step.update();
    }
    step.settle();
    const std::scoped_lock lock(mutex);
    const auto rank = static_cast<size_t>(communicator.rank());
    trained.memory[rank] = step.executor().memory_bytes();
    trained.kept[rank] = step.weights().memory_bytes();
    if (grid.group() == 0) collect_variables(step.weights(), trained);
  });
  return trained;
}

/// The largest difference of a variable, relative to its 2-norm.
double stages_apart(const TrainedStages& a, const TrainedStages& b) {
  EXPECT_EQ(a.variables.size(), b.variables.size());
  double most = 0;
  for (const auto& [name, x] : a.variables) {
    const auto other = b.variables.find(name);
    if (other == b.variables.end() || other->second.size() != x.size()) {
      ADD_FAILURE() << name << " is missing";
      continue;
    }
    double difference = 0, norm = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      difference += std::pow(x[i] - other->second[i], 2);
      norm += std::pow(x[i], 2);
    }
    most = std::max(most, std::sqrt(difference / std::max(norm, 1e-12)));
  }
  for (size_t s = 0; s < a.losses.size(); ++s)
    EXPECT_NEAR(a.losses[s], b.losses[s], 1e-5 * std::abs(b.losses[s])) << "step " << s;
  return most;
}

models::ModelSpec staged_resnet() {
  return {.name = "resnet8", .input = {3, 12, 12}, .batch = 4, .width = 8};
}

models::ModelSpec staged_mlp() {
  return {.name = "mlp", .input = {3, 8, 8}, .batch = 4, .hidden = {32, 24, 16}};
}

/// The embedding is also the output layer: the first stage and the last one have it.
models::ModelSpec staged_gpt2() {
  return {.name = "gpt2",
          .input = {8},
          .input_field = "tokens",
          .target_field = "next",
          .batch = 2,
          .classes = 11,
          .width = 12,
          .dropout = 0.1f,
          .depth = 3,
          .heads = 3,
          .context = 16};
}

size_t sum_of_bytes(const std::vector<size_t>& of_ranks) {
  return std::accumulate(of_ranks.begin(), of_ranks.end(), size_t{0});
}

}  // namespace

TEST(Pipeline, StagesTakeTheStepsOfOneRank) {
  for (const models::ModelSpec& model : {staged_resnet(), staged_mlp(), staged_gpt2()}) {
    const TrainedStages serial = train_stages({.model = model});
    for (const int stages : {2, 3})
      for (const split::PipelineOrder order :
           {split::PipelineOrder::one_f_one_b, split::PipelineOrder::gpipe}) {
        const TrainedStages piped =
            train_stages({.model = model, .stages = stages, .order = order});
        EXPECT_LT(stages_apart(piped, serial), 1e-5)
            << model.name << " in " << stages << " stages, order " << static_cast<int>(order);
      }
  }
}

TEST(Pipeline, TheSameStagesGiveTheSameBitsInBothOrders) {
  const PipelineRun run{.model = staged_resnet(), .stages = 3, .micro_batches = 5};
  const TrainedStages once = train_stages(run);
  EXPECT_EQ(train_stages(run).variables, once.variables);
  PipelineRun other = run;
  other.order = split::PipelineOrder::gpipe;
  EXPECT_EQ(train_stages(other).variables, once.variables);
}

TEST(Pipeline, GradientsOfAStageAreSummedOverReplicas) {
  for (const models::ModelSpec& model : {staged_resnet(), staged_gpt2()}) {
    const TrainedStages serial = train_stages({.model = model, .replicas = 2, .micro_batches = 2});
    const TrainedStages piped =
        train_stages({.model = model, .stages = 2, .replicas = 2, .micro_batches = 2});
    EXPECT_LT(stages_apart(piped, serial), 1e-5) << model.name;
  }
}

// Updates of large parameters have bands of their own, after the band that waits for activations:
// before that, each stage must have sent its part of a shared parameter's gradient.
TEST(Pipeline, LargeSharedParametersAndALateRank) {
  models::ModelSpec model = staged_gpt2();
  model.classes = 2048;  // 1 MiB
  model.width = 128;
  model.heads = 4;
  model.depth = 6;  // the last stage has blocks before its output layer
  const PipelineRun run{.model = model, .stages = 2, .replicas = 2, .micro_batches = 2};
  PipelineRun serial = run;
  serial.stages = 1;
  const TrainedStages expected = train_stages(serial);
  for (const int late : {2, 3}) {
    PipelineRun piped = run;
    piped.late = late;
    EXPECT_LT(stages_apart(train_stages(piped), expected), 1e-5) << "rank " << late;
  }
}

TEST(Pipeline, FewerMicroBatchesThanStages) {
  const TrainedStages serial = train_stages({.model = staged_mlp(), .micro_batches = 1});
  const TrainedStages piped =
      train_stages({.model = staged_mlp(), .stages = 4, .micro_batches = 1});
  EXPECT_LT(stages_apart(piped, serial), 1e-5);
}

TEST(Pipeline, FrozenLayersAndThreads) {
  const PipelineRun frozen{.model = staged_resnet(), .threads = 2, .freeze = {"conv1.*", "bn1.*"}};
  const TrainedStages serial = train_stages(frozen);
  PipelineRun stages = frozen;
  stages.stages = 2;
  EXPECT_LT(stages_apart(train_stages(stages), serial), 1e-5);
}

TEST(Pipeline, AStageKeepsItsOwnAlone) {
  models::ModelSpec model = staged_mlp();
  model.hidden = {256, 256, 256, 256};
  const TrainedStages serial = train_stages({.model = model}),
                      piped = train_stages({.model = model, .stages = 4, .micro_batches = 8});
  EXPECT_LT(*std::ranges::max_element(piped.kept), serial.kept[0] / 2);
  EXPECT_LT(sum_of_bytes(piped.kept), serial.kept[0] + serial.kept[0] / 10);
}

TEST(Pipeline, KeepsActivationsOfSMinusStageMicroBatches) {
  const PipelineRun run{.model = staged_resnet(), .stages = 2, .micro_batches = 6};
  PipelineRun gpipe = run;
  gpipe.order = split::PipelineOrder::gpipe;
  const TrainedStages few = train_stages(run), all = train_stages(gpipe);
  EXPECT_LT(2 * few.memory[0], all.memory[0]);
  EXPECT_EQ(few.memory[1], all.memory[1]);
}

}  // namespace tutti::train
