#include "tests/plan/plan_run.h"

#include "tutti/base/numeric/rng.h"
#include "tutti/train/network/weights.h"

namespace tutti::test {

namespace {

train::TrainingGraphSpec small_step(int64_t batch) {
  train::TrainingGraphSpec spec;
  spec.model.input = {3, 8, 8};
  spec.model.batch = batch;
  spec.optimizer.momentum = 0.9f;
  spec.optimizer.nesterov = true;
  spec.optimizer.weight_decay = 1e-4f;
  spec.bucket_bytes = 256 << 10;
  return spec;
}

models::LayerTable layer(const std::string& type,
                         std::vector<std::pair<std::string, models::LayerValue>> keys) {
  keys.insert(keys.begin(), {"type", type});
  return {keys};
}

models::LayerTable convolution(int64_t channels, int64_t stride) {
  return layer("conv", {{"channels", channels},
                        {"kernel", int64_t{3}},
                        {"stride", stride},
                        {"pad", int64_t{1}},
                        {"bias", false}});
}

}  // namespace

train::TrainingGraph small_residual_net(DType activations, int64_t batch) {
  train::TrainingGraphSpec spec = small_step(batch);
  spec.model.name = "resnet8";
  spec.model.activations = activations;
  return train::make_training_graph(spec);
}

train::TrainingGraph small_smooth_net(int64_t batch) {
  train::TrainingGraphSpec spec = small_step(batch);
  spec.model.name = "layers";
  spec.model.classes = 10;
  std::vector<models::LayerTable>& layers = spec.model.layers;
  const std::string gelu = "gelu";
  for (const int64_t channels : {16, 32, 64}) {
    const std::string first = "in" + std::to_string(channels),
                      last = "out" + std::to_string(channels);
    layers.push_back(convolution(channels, channels == 16 ? 1 : 2));
    layers.push_back(layer("batch_norm", {{"name", first}, {"activation", gelu}}));
    layers.push_back(convolution(channels, 1));
    layers.push_back(layer("batch_norm", {{"activation", gelu}}));
    layers.push_back(convolution(channels, 1));
    layers.push_back(layer("batch_norm", {{"name", last}}));
    layers.push_back(
        layer("add", {{"input", std::vector<std::string>{last, first}}, {"activation", gelu}}));
  }
  layers.push_back(layer("global_average", {}));
  layers.push_back(layer("dense", {}));
  return train::make_training_graph(spec);
}

PlanRun run_once(const train::TrainingGraph& training, const backend::Backend& backend,
                 const plan::PlanOptions& options) {
  const plan::Plan plan = plan::compile(training.graph, backend, options);
  const std::unique_ptr<plan::Executor> executor = plan::make_executor(plan, backend);
  train::Weights weights(plan.variables, 1);
  weights.initialise(7);
  device::Buffer gradients(plan.variables.parameter_bytes);
  plan::ReplicaState replica = weights.replica(0);
  replica.gradients = gradients.data();
  executor->bind(replica);
  executor->set_scalar(training.lr, 0.05f);
  executor->set_scalar(training.gradient_scale, 1.0f);

  const TensorDesc& desc = plan.desc(training.inputs[0].value);
  device::Buffer images(desc.bytes()), labels(static_cast<size_t>(plan.batch) * sizeof(int32_t));
  Rng rng(3, Purpose::test, 0);
  int64_t at[4];
  for (at[0] = 0; at[0] < desc.shape[0]; ++at[0])
    for (at[1] = 0; at[1] < desc.shape[1]; ++at[1])
      for (at[2] = 0; at[2] < desc.shape[2]; ++at[2])
        for (at[3] = 0; at[3] < desc.shape[3]; ++at[3]) {
          const auto i = static_cast<size_t>(desc.layout.offset(desc.shape, at));
          const float x = rng.normal();
          if (desc.dtype == DType::bf16)
            images.as<bf16>()[i] = bf16(x);
          else
            images.as<float>()[i] = x;
        }
  for (int64_t i = 0; i < plan.batch; ++i)
    labels.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(rng.below(10));
  executor->bind_input(training.inputs[0].value, images.data());
  executor->bind_input(training.inputs[1].value, labels.data());
  executor->pack();
  executor->run({.seed = 1});
  PlanRun result;
  result.loss = *static_cast<const float*>(executor->result(training.losses.front()));
  const auto keep = [](std::map<std::string, std::vector<float>>& into,
                       const plan::Variable& variable, const std::byte* arena) {
    std::vector<float>& plain = into[variable.name];
    plain.resize(static_cast<size_t>(variable.desc.elements()));
    plan::export_plain(variable, arena, plain.data());
  };
  for (const plan::Variable& variable : plan.variables.parameters)
    keep(result.gradients, variable, gradients.data());
  executor->update({.seed = 1});
  for (const plan::Variable& variable : plan.variables.parameters)
    keep(result.parameters, variable, weights.parameters());
  for (const plan::Variable& variable : plan.variables.statistics)
    keep(result.statistics, variable, weights.statistics(0));
  return result;
}

}  // namespace tutti::test
