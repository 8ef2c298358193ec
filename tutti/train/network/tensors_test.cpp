// Tests that ranks which share a replica's layers compute the same as one rank: steps of small
// networks, with threads as ranks.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/models/registry.h"
#include "tutti/split/tensors.h"
#include "tutti/train/step/training_step.h"

namespace tutti::train {
namespace {

constexpr int64_t kSharedWindow = 13, kSharedVocabulary = 61;

/// 61 tokens, 13 positions and 50 hidden channels: the vocabulary, a sequence and the MLPs divide
/// unevenly.
models::ModelSpec shared_gpt2() {
  return {.name = "gpt2",
          .input = {kSharedWindow},
          .input_field = "tokens",
          .target_field = "next",
          .inputs = {{.name = "tokens", .sample = {kSharedWindow}, .classes = kSharedVocabulary}},
          .targets = {{.name = "next", .sample = {kSharedWindow}, .classes = kSharedVocabulary}},
          .batch = 3,
          .classes = kSharedVocabulary,
          .width = 32,
          .hidden = {50},
          .dropout = 0.1f,
          .attention_dropout = 0.2f,
          .depth = 2,
          .heads = 4,
          .context = 16};
}

struct TensorRun {
  int replicas = 1, tensor = 1, steps = 1, threads = 1;
  bool positions = false;
  config::OptimizerSection optimizer{.momentum = 0};
  float rate = 1;
  models::ModelSpec model = shared_gpt2();
};

using Tensors = std::map<std::string, std::vector<float>>;

struct SharedSteps {
  std::vector<double> losses, norms;  ///< by step, mean over replicas
  Tensors first, last;                ///< whole parameters
};

Tensors whole_parameters(const Weights& weights) {
  Tensors all;
  for (const keep::NamedTensor& tensor :
       keep::materialise(weights.model_tensors(weights.parameters(), weights.statistics(0)))) {
    const auto* x = reinterpret_cast<const float*>(tensor.bytes.data());
    all[tensor.name].assign(x, x + tensor.desc.elements());
  }
  return all;
}

/// A replica's batch of a field: bits of numbers, or class numbers, some unknown where they are
/// targets.
std::vector<int32_t> step_batch(const models::ModelSpec& model, const std::string& name, int step,
                                int replica) {
  const models::ModelField* field = nullptr;
  for (const auto* fields : {&model.inputs, &model.targets})
    for (const models::ModelField& one : *fields)
      if (one.name == name) field = &one;
  EXPECT_NE(field, nullptr) << name;
  uint64_t stream = static_cast<uint64_t>(step * 100 + replica);
  for (const char c : name) stream = stream * 131 + static_cast<unsigned char>(c);
  Rng rng(5, Purpose::test, stream);
  std::vector<int32_t> batch(static_cast<size_t>(model.batch * field->sample.elements()));
  for (int32_t& x : batch) {
    if (field->classes == 0)
      x = std::bit_cast<int32_t>(rng.normal());
    else if (name == "next" && rng.below(8) == 0)
      x = -1;
    else
      x = static_cast<int32_t>(rng.below(static_cast<uint32_t>(field->classes)));
  }
  return batch;
}

SharedSteps train_shared(const TensorRun& run) {
  SharedSteps made;
  made.losses.resize(static_cast<size_t>(run.steps));
  made.norms.resize(made.losses.size());
  std::mutex mutex;
  const int ranks = run.replicas * run.tensor;
  comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
    const split::PartGrid grid =
        split::PartGrid::of_tensors(run.tensor, ranks, communicator.rank(), run.positions);
    TrainingStepSpec spec{.map = exchange::ReplicaMap(run.replicas, grid.groups(), grid.group()),
                          .grid = grid,
                          .seed = 3};
    spec.network.training.model = run.model;
    spec.network.training.optimizer = run.optimizer;
    spec.network.training.split.threads = run.threads;
    spec.network.training.bucket_bytes = 4096;
    spec.network.plan.measure = false;
    const backend::CpuBackend backend;
    TrainingStep step(spec, backend, communicator);
    const Tensors first = whole_parameters(step.weights());
    step.start();
    for (int s = 0; s < run.steps; ++s) {
      std::vector<std::vector<int32_t>> fields;
      for (const models::GraphInput& input : step.network().inputs)
        fields.push_back(step_batch(run.model, input.field, s, grid.group()));
      std::vector<void*> batch;
      for (std::vector<int32_t>& field : fields) batch.push_back(field.data());
      step.begin(s, run.rate);
      const double loss = static_cast<double>(step.run(0, batch));
      step.update();
      step.settle();
      const GradientNorms norms = step.take_gradient_norms();
      const std::scoped_lock lock(mutex);
      made.losses[static_cast<size_t>(s)] += loss / run.replicas;
      if (norms.count > 0 && communicator.rank() == 0)
        made.norms[static_cast<size_t>(s)] = norms.mean();
    }
    const Tensors last = whole_parameters(step.weights());
    const std::scoped_lock lock(mutex);
    if (communicator.rank() != 0) return;
    made.first = first;
    made.last = last;
  });
  return made;
}

double distance_of(const std::vector<float>& a, const std::vector<float>& b) {
  double apart = 0, all = 0;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    apart += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    all += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(apart / std::max(all, 1e-30));
}

/// Returns the change made by plain gradient descent at rate 1, which is the gradient.
Tensors gradients_of(const SharedSteps& run) {
  Tensors gradients;
  for (const auto& [name, first] : run.first)
    for (size_t i = 0; i < first.size(); ++i)
      gradients[name].push_back(first[i] - run.last.at(name)[i]);
  return gradients;
}

TrainingGraph graph_of_tensors(const models::ModelSpec& model, const split::PartGrid& grid) {
  return make_training_graph({.model = model, .split = {.grid = grid}});
}

/// Expects the losses and gradients of ranks that share layers to be those of others, up to
/// rounding.
void expect_alike(const SharedSteps& shared, const SharedSteps& alone, double loss = 1e-5,
                  double gradient = 1e-4) {
  EXPECT_EQ(shared.first, alone.first) << "the same first weights";
  for (size_t s = 0; s < alone.losses.size(); ++s)
    EXPECT_NEAR(shared.losses[s], alone.losses[s], loss);
  const Tensors gradients = gradients_of(shared);
  for (const auto& [name, of_one] : gradients_of(alone))
    EXPECT_LT(distance_of(gradients.at(name), of_one), gradient) << name;
}

TEST(SharedTensors, HaveTheLossAndTheGradientsOfOneRank) {
  const SharedSteps alone = train_shared({.replicas = 1}), two = train_shared({.replicas = 2});
  for (const auto& [replicas, tensor, positions] :
       {std::tuple{1, 2, false}, {1, 4, false}, {2, 2, false}, {1, 2, true}, {2, 4, true}}) {
    SCOPED_TRACE(fmt::format("{} replica(s) on {} ranks each{}", replicas, tensor,
                             positions ? ", which share positions" : ""));
    const SharedSteps shared =
        train_shared({.replicas = replicas, .tensor = tensor, .positions = positions});
    EXPECT_EQ(gradients_of(shared).size(), gradients_of(alone).size());
    expect_alike(shared, replicas == 1 ? alone : two);
  }
}

/// Two ranks, with or without shared positions, compute the same as one. `shared_layers` must occur
/// in their text.
void expect_those_of_one_rank(TensorRun run, std::string_view shared_layers) {
  const SharedSteps alone = train_shared(run);
  run.tensor = 2;
  for (const bool positions : {false, true}) {
    SCOPED_TRACE(positions ? "shared positions" : "whole positions");
    run.positions = positions;
    expect_alike(train_shared(run), alone);
  }
  EXPECT_TRUE(has_text(graph_of_tensors(run.model, split::PartGrid::of_tensors(2, 2, 0)).tensors,
                       shared_layers));
}

/// Rotated queries and keys, shared key heads, gated layers.
TEST(SharedTensors, OfLlamaAreThoseOfOneRank) {
  TensorRun run;
  run.model.name = "llama";
  run.model.context = 0;
  run.model.dropout.reset();
  run.model.attention_dropout.reset();
  run.model.key_heads = 2;
  expect_those_of_one_rank(run, "10 layers by columns, 4 by rows, 2 attentions");
}

/// On one rank the output layer and its loss are one op, which processes some positions at a time.
TEST(SharedTensors, OfALargeVocabularyAreThoseOfOneRank) {
  TensorRun run{.threads = 2};
  run.model.classes = run.model.inputs[0].classes = run.model.targets[0].classes = 4500;
  run.model.batch = 23;
  run.model.loss.label_smoothing = 0.1f;
  expect_those_of_one_rank(run, "embedding and loss");
  run.model.name = "llama";  // here the output layer has its own weights
  run.model.context = 0;
  run.model.dropout.reset();
  run.model.attention_dropout.reset();
  expect_those_of_one_rank(run, "embedding and loss");
}

/// Attention to another sequence; one weight serves both embeddings and the logits.
TEST(SharedTensors, OfATransformerAreThoseOfOneRank) {
  TensorRun run;
  run.model.name = "transformer-base";
  run.model.context = 0;
  run.model.input_field = "source";
  run.model.inputs.insert(run.model.inputs.begin(), run.model.inputs.front());
  run.model.inputs.front().name = "source";
  expect_those_of_one_rank(
      run, "12 layers by columns, 10 by rows, 6 attentions by heads, embedding and loss");
}

/// Images have 17 positions: patches and one token before them.
TEST(SharedTensors, OfAVisionTransformerAreThoseOfOneRank) {
  TensorRun run;
  run.model = {.name = "vit-ti",
               .input = {1, 8, 8},
               .inputs = {{.name = "image", .sample = {1, 8, 8}}},
               .targets = {{.name = "label", .classes = 7}},
               .batch = 3,
               .classes = 7,
               .width = 32,
               .hidden = {50},
               .dropout = 0.1f,
               .attention_dropout = 0.2f,
               .depth = 2,
               .heads = 4,
               .kernel = 2};
  expect_those_of_one_rank(run,
                           "4 layers by columns, 4 by rows, 2 attentions by heads, no vocabulary");
}

/// Layers are shared, and so is the query that reads them; all ranks compute its input.
TEST(SharedTensors, OfASequenceEncoderAreThoseOfOneRank) {
  TensorRun run;
  run.model = {.name = "sequence-encoder",
               .input = {3, 24},
               .input_field = "signals",
               .inputs = {{.name = "signals", .sample = {3, 24}}},
               .targets = {{.name = "label", .classes = 7}},
               .batch = 3,
               .classes = 7,
               .width = 32,
               .hidden = {50},
               .dropout = 0.1f,
               .depth = 2,
               .heads = 4,
               .kernel = 4};
  expect_those_of_one_rank(run,
                           "4 layers by columns, 4 by rows, 2 attentions by heads, no vocabulary");
}

/// Only the second step trains the first of its two layers: before, the other one is 0.
TEST(SharedTensors, OfLoraAreThoseOfOneRank) {
  TensorRun run{.steps = 2};
  run.model.lora = {.rank = 2, .layers = {"*"}};
  expect_those_of_one_rank(
      run, "8 layers by columns, 8 by rows, 2 attentions by heads, embedding and loss");
}

TEST(SharedTensors, HaveTheSameBitsEachTime) {
  for (const bool positions : {false, true}) {
    const TensorRun run{
        .replicas = 2, .tensor = 2, .steps = 2, .threads = 2, .positions = positions};
    const SharedSteps once = train_shared(run), again = train_shared(run);
    EXPECT_EQ(once.losses, again.losses);
    EXPECT_EQ(once.last, again.last);
  }
}

/// Norms cover whole parameters, and all of them.
TEST(SharedTensors, ClipAndScaleByWholeNorms) {
  config::OptimizerSection clipped{.name = config::OptimizerKind::adamw, .weight_decay = 0.1};
  clipped.clip_norm = 0.05;
  clipped.ema = 0.9;
  const config::OptimizerSection lamb{.name = config::OptimizerKind::lamb, .weight_decay = 0.1};
  const config::OptimizerSection lars{.name = config::OptimizerKind::lars, .momentum = 0.9};
  for (const config::OptimizerSection& optimizer : {clipped, lamb, lars}) {
    SCOPED_TRACE(static_cast<int>(optimizer.name));
    TensorRun run{.steps = 3, .optimizer = optimizer, .rate = 0.01f};
    const SharedSteps serial = train_shared(run);
    run.tensor = 2;
    run.positions = optimizer.name == config::OptimizerKind::adamw;
    const SharedSteps shared = train_shared(run);
    for (size_t s = 0; s < serial.losses.size(); ++s) {
      EXPECT_NEAR(shared.losses[s], serial.losses[s], 2e-5) << "step " << s;
      EXPECT_NEAR(shared.norms[s], serial.norms[s], 1e-4 * serial.norms[s]) << "step " << s;
    }
    for (const auto& [name, weights] : serial.last)
      EXPECT_LT(distance_of(shared.last.at(name), weights), 1e-3) << name;
  }
}

TEST(SharedTensors, RoundAlikeInBf16) {
  TensorRun run;
  run.model.activations = DType::bf16;
  const SharedSteps serial = train_shared(run);
  run.tensor = 2;
  expect_alike(train_shared(run), serial, 2e-2, 2e-2);
}

/// Returns the message of a ConfigError.
std::string refusal_of(const models::ModelSpec& model, int tensor) {
  return message_of<ConfigError>(
      "", [&] { (void)graph_of_tensors(model, split::PartGrid::of_tensors(tensor, tensor, 0)); });
}

/// Counting hits reads logits, too, and weights have the same places as in training.
TEST(SharedTensors, EvaluationsShareAsTrainingDoes) {
  const split::PartGrid grid = split::PartGrid::of_tensors(2, 2, 1);
  models::ModelSpec evaluated = shared_gpt2();
  evaluated.mode = ops::Mode::eval;
  const split::SplitTensors split =
      split::split_tensors(models::build_model(evaluated).graph, grid);
  const TrainingGraph training = graph_of_tensors(shared_gpt2(), grid);
  EXPECT_TRUE(split.slices.contains("wte.weight"));
  EXPECT_EQ(split.slices.size(), training.slices.size());
  for (const auto& [name, slice] : training.slices)
    EXPECT_TRUE(split.slices.contains(name)) << name;
}

TEST(SharedTensors, ANetworkWithNothingToShareIsRefused) {
  models::ModelSpec images{.name = "resnet8", .batch = 2};
  EXPECT_TRUE(has_text(refusal_of(images, 2), "2 ranks find no layers to share"));
  EXPECT_THROW(split::PartGrid::of_tensors(2, 3, 0), ConfigError);
}

TEST(SharedTensors, PositionsAreOfSequencesAlone) {
  models::ModelSpec vectors{
      .name = "mlp", .input = {1, 4, 4}, .batch = 2, .classes = 3, .hidden = {8, 8}};
  const auto graph_of = [&](bool positions) {
    return graph_of_tensors(vectors, split::PartGrid::of_tensors(2, 2, 0, positions));
  };
  EXPECT_TRUE(has_text(graph_of(false).tensors, "1 layers by columns, 1 by rows"));
  EXPECT_THROW((void)graph_of(true), ConfigError);
}

/// Where heads do not divide evenly, attention stays whole; all else is shared.
TEST(SharedTensors, HeadsThatDoNotDivideStayWhole) {
  const TrainingGraph graph = graph_of_tensors(shared_gpt2(), split::PartGrid::of_tensors(3, 3, 0));
  EXPECT_FALSE(graph.slices.contains("h.0.attn.c_attn.weight"));
  EXPECT_TRUE(graph.slices.contains("h.0.mlp.c_fc.weight"));
  EXPECT_TRUE(graph.slices.contains("wte.weight"));
  EXPECT_TRUE(has_text(graph.tensors, "2 layers by columns, 2 by rows, 0 attentions"));
}

}  // namespace
}  // namespace tutti::train
