#include "tutti/train/network/evaluation_network.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/split/split.h"
#include "tutti/split/tensors.h"

namespace tutti::train {
namespace {

/// Adds the targets as in training; only the training graph contains them.
void add_targets(EvaluationNetwork& network, models::ModelSpec model) {
  model.mode = ops::Mode::train;
  const models::ModelGraph built = models::build_model(model);
  for (const models::GraphInput& target : built.targets)
    network.targets.push_back(
        {target.field, built.graph.type(target.value).desc, {}, target.classes});
  for (const models::ModelOutput& output : built.outputs) {
    network.target_of.push_back(output.target);
    network.of_data.push_back(is_of_data(output.objective));
  }
}

/// Losses are means over a batch: with batches of one sample they are the sample's own, and their
/// mean over samples is the set's, for any number of samples. Returns null if the model has no such
/// losses in evaluations.
std::unique_ptr<OwnLosses> own_losses_of(models::ModelSpec model, const plan::Plan& evaluation,
                                         const backend::Backend& backend,
                                         plan::PlanOptions options) {
  model.mode = ops::Mode::eval;
  model.batch = 1;
  const models::ModelGraph built = models::build_model(model, true);
  if (built.losses.empty()) return nullptr;
  const ops::Rewritten whole = ops::drop_copies(built.graph);
  const ops::Rewritten fused = ops::fuse_forward(whole.graph);
  const auto final_value = [&](graph::Value v) {
    return fused.of[static_cast<size_t>(whole.of[static_cast<size_t>(v.id)].id)];
  };
  auto own = std::make_unique<OwnLosses>();
  options.variables = &evaluation.variables;
  options.choices = {};
  options.measure = false;
  own->plan = plan::compile(fused.graph, backend, options);
  for (const auto& some : {built.inputs, built.targets})
    for (const models::GraphInput& input : some)
      own->inputs.push_back({input.field, final_value(input.value), input.classes});
  for (const graph::Value loss : built.losses) own->losses.push_back(final_value(loss));
  return own;
}

/// Returns this rank's stage, with the variables that it has in training. All predictions belong to
/// the last stage.
ops::Rewritten evaluation_stage(const ops::Rewritten& whole, const models::ModelGraph& built,
                                const split::PartGrid& grid, const split::Stages& training,
                                const std::function<graph::Value(graph::Value)>& final_value) {
  const split::Stages stages = split::stages_like(whole.graph, training);
  const auto require_end = [&](graph::Value v) {
    const int producer = whole.graph[final_value(v)].producer;
    if (producer < 0 || stages.of_node[static_cast<size_t>(producer)] + 1 != grid.stages())
      throw ConfigError(fmt::format(
          "parallel.pipeline: '{}' is given out before the last of {} stages, and evaluations have "
          "predictions in the last one alone: take fewer stages",
          built.graph[v].name, grid.stages()));
  };
  for (const models::ModelOutput& output : built.outputs) require_end(output.prediction);
  for (const models::ModelReading& reading : built.readings) require_end(reading.value);
  return split::take_stage(whole.graph, stages, grid.stage(), {});
}

/// Checks that ranks share an evaluation's parameters as training does, since they stay where
/// training puts them.
void require_same(const graph::Graph& graph, const plan::Variables& variables) {
  for (const graph::Value p : graph.with_role(graph::Role::parameter)) {
    const plan::Variable* trained = variables.find_parameter(graph[p].name);
    if (trained && trained->desc.shape != graph.shape(p))
      throw ConfigError(fmt::format(
          "parallel.tensor: '{}' is {} in training and {} in evaluation, because what reads it "
          "differs: such a model cannot share its layers yet",
          graph[p].name, trained->desc.shape.to_string(), graph.shape(p).to_string()));
  }
}

}  // namespace

bool is_of_data(const models::Objective& objective) {
  return *objective.task == models::TaskKind::regress &&
         *objective.loss != ops::PointwiseLossKind::bce_with_logits;
}

split::SplitSettings with_advice(split::SplitSettings slabs, const backend::Backend& backend) {
  if (slabs.tile_bytes == 0) slabs.tile_bytes = backend.tile_bytes();
  return slabs;
}

std::vector<data::BatchField> batch_of(const plan::Plan& plan,
                                       const std::vector<models::GraphInput>& inputs) {
  std::vector<data::BatchField> fields;
  for (const models::GraphInput& input : inputs)
    fields.push_back({input.field, plan.desc(input.value), {}, input.classes});
  return fields;
}

std::vector<std::optional<data::BatchRows>> rows_of(const graph::Graph& graph,
                                                    const std::vector<models::GraphInput>& inputs) {
  std::vector<std::optional<data::BatchRows>> rows;
  for (const models::GraphInput& input : inputs) {
    const auto read = split::rows_read(graph, input.value);
    rows.push_back(
        read ? std::optional(data::BatchRows{read->dim, read->rows.first, read->rows.last})
             : std::nullopt);
  }
  return rows;
}

std::unique_ptr<EvaluationNetwork> evaluation_of(const models::ModelSpec& model,
                                                 const split::SplitSettings& split,
                                                 const backend::Backend& backend,
                                                 const plan::PlanOptions& options,
                                                 const split::Stages* stages) {
  models::ModelSpec spec = model;
  spec.mode = ops::Mode::eval;
  const models::ModelGraph built = models::build_model(spec);
  auto network = std::make_unique<EvaluationNetwork>();
  split::SplitSettings parts = with_advice(split, backend);
  network->grid = split.grid.without_sharing();  // it uses running statistics
  const split::SplitTensors tensors = split::split_tensors(built.graph, network->grid);
  const ops::Rewritten whole = ops::drop_copies(tensors.rewritten.graph);
  parts.grid = network->grid.of_samples();
  const ops::Rewritten cut = split::split_samples(whole.graph, parts);
  const ops::Rewritten shared = split::share_tables(cut.graph, split.tables, false).rewritten;
  network->shares_tables =
      split.tables.ranks > 1 && !built.graph.with_role(graph::Role::table).empty();
  ops::Rewritten last = ops::fuse_forward(shared.graph);
  std::vector<const ops::Rewritten*> passes = {&tensors.rewritten, &whole, &cut, &shared, &last};
  const auto final_value = [&](graph::Value v) {
    for (const ops::Rewritten* pass : passes)
      if (v.valid()) v = pass->of[static_cast<size_t>(v.id)];
    return v;  // invalid: it is in another stage
  };
  ops::Rewritten staged;
  if (stages && stages->count > 1) {
    staged = evaluation_stage(last, built, network->grid, *stages, final_value);
    passes.push_back(&staged);
  }
  const ops::Rewritten heads = ops::fuse_heads(passes.back()->graph, {});
  passes.push_back(&heads);
  const graph::Graph& graph = heads.graph;
  if (options.variables) require_same(graph, *options.variables);
  plan::PlanOptions own = options;
  own.threads = split.threads;
  own.tile_bytes = split.tile_bytes;
  network->plan = plan::compile(graph, backend, own);
  network->plan.variables.set_slices(tensors.slices);
  for (const models::GraphInput& input : built.inputs)
    if (const graph::Value value = final_value(input.value); value.valid())
      network->inputs.push_back({input.field, value});
  for (const models::ModelOutput& output : built.outputs)
    if (const graph::Value value = final_value(output.prediction); value.valid()) {
      network->predictions.push_back(value);
      network->names.push_back(output.objective.name);
    }
  for (const models::ModelReading& reading : built.readings)
    if (const graph::Value value = final_value(reading.value); value.valid()) {
      network->predictions.push_back(value);
      network->names.push_back(reading.name);
    }
  network->rows = rows_of(graph, network->inputs);
  const bool whole_here =
      network->grid.stages() == 1 && network->grid.tensor() == 1 && !network->shares_tables;
  if (whole_here &&
      std::ranges::any_of(built.outputs, [](const auto& o) { return o.objective.own_loss; }))
    network->own_losses = own_losses_of(model, network->plan, backend, own);
  if (network->grid.stage() + 1 == network->grid.stages()) add_targets(*network, model);
  return network;
}

std::vector<data::BatchField> OwnLosses::batch() const { return batch_of(plan, inputs); }

std::vector<data::BatchField> EvaluationNetwork::batch() const {
  std::vector<data::BatchField> fields = batch_of(plan, inputs);
  for (size_t i = 0; i < fields.size(); ++i) fields[i].rows = rows[i];
  fields.insert(fields.end(), targets.begin(), targets.end());
  return fields;
}

}  // namespace tutti::train
