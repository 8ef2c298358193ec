#include "tutti/train/network/evaluation_network.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/split/rows_read.h"
#include "tutti/split/tensors.h"

namespace tutti {
namespace {

/// Adds the targets as in training; only the training graph contains them.
void add_targets(EvaluationNetwork& network, ModelSpec model) {
  model.mode = Mode::train;
  const ModelGraph built = build_model(model);
  for (const GraphInput& target : built.targets)
    network.targets.push_back(
        {target.field, built.graph.type(target.value).desc, {}, target.classes});
  for (const ModelOutput& output : built.outputs) {
    network.target_of.push_back(output.target);
    network.of_data.push_back(is_of_data(output.objective));
  }
}

/// Losses are means over a batch: with batches of one sample they are the sample's own, and their
/// mean over samples is the set's, for any number of samples. Returns null if the model has no such
/// losses in evaluations.
std::unique_ptr<OwnLosses> own_losses_of(ModelSpec model, const Plan& evaluation,
                                         const Backend& backend, PlanOptions options) {
  model.mode = Mode::eval;
  model.batch = 1;
  const ModelGraph built = build_model(model, true);
  if (built.losses.empty()) return nullptr;
  const Rewritten whole = drop_copies(built.graph);
  const Rewritten fused = fuse_forward(whole.graph);
  const auto final_value = [&](Value v) {
    return fused.of[static_cast<size_t>(whole.of[static_cast<size_t>(v.id)].id)];
  };
  auto own = std::make_unique<OwnLosses>();
  options.variables = &evaluation.variables;
  options.choices = {};
  options.measure = false;
  own->plan = compile(fused.graph, backend, options);
  for (const auto& some : {built.inputs, built.targets})
    for (const GraphInput& input : some)
      own->inputs.push_back({input.field, final_value(input.value), input.classes});
  for (const Value loss : built.losses) own->losses.push_back(final_value(loss));
  return own;
}

/// Returns this rank's stage, with the variables that it has in training. All predictions belong to
/// the last stage.
Rewritten evaluation_stage(const Rewritten& whole, const ModelGraph& built, const PartGrid& grid,
                           const Stages& training, const std::function<Value(Value)>& final_value) {
  const Stages stages = stages_like(whole.graph, training);
  const auto require_end = [&](Value v) {
    const int producer = whole.graph[final_value(v)].producer;
    if (producer < 0 || stages.of_node[static_cast<size_t>(producer)] + 1 != grid.stages())
      throw ConfigError(fmt::format(
          "parallel.pipeline: '{}' is given out before the last of {} stages, and evaluations have "
          "predictions in the last one alone: take fewer stages",
          built.graph[v].name, grid.stages()));
  };
  for (const ModelOutput& output : built.outputs) require_end(output.prediction);
  for (const ModelReading& reading : built.readings) require_end(reading.value);
  return take_stage(whole.graph, stages, grid.stage(), {});
}

/// Checks that ranks share an evaluation's parameters as training does, since they stay where
/// training puts them.
void require_same(const Graph& graph, const Variables& variables) {
  for (const Value p : graph.with_role(Role::parameter)) {
    const Variable* trained = variables.find_parameter(graph[p].name);
    if (trained && trained->desc.shape != graph.shape(p))
      throw ConfigError(fmt::format(
          "parallel.tensor: '{}' is {} in training and {} in evaluation, because what reads it "
          "differs: such a model cannot share its layers yet",
          graph[p].name, trained->desc.shape.to_string(), graph.shape(p).to_string()));
  }
}

}  // namespace

bool is_of_data(const Objective& objective) {
  return *objective.task == TaskKind::regress &&
         *objective.loss != PointwiseLossKind::bce_with_logits;
}

SplitSettings with_advice(SplitSettings slabs, const Backend& backend) {
  if (slabs.tile_bytes == 0) slabs.tile_bytes = backend.tile_bytes();
  return slabs;
}

std::vector<data::BatchField> batch_of(const Plan& plan, const std::vector<GraphInput>& inputs) {
  std::vector<data::BatchField> fields;
  for (const GraphInput& input : inputs)
    fields.push_back({input.field, plan.desc(input.value), {}, input.classes});
  return fields;
}

std::vector<std::optional<data::BatchRows>> rows_of(const Graph& graph,
                                                    const std::vector<GraphInput>& inputs) {
  std::vector<std::optional<data::BatchRows>> rows;
  for (const GraphInput& input : inputs) {
    const auto read = rows_read(graph, input.value);
    rows.push_back(
        read ? std::optional(data::BatchRows{read->dim, read->rows.first, read->rows.last})
             : std::nullopt);
  }
  return rows;
}

std::unique_ptr<EvaluationNetwork> evaluation_of(const ModelSpec& model, const SplitSettings& split,
                                                 const Backend& backend, const PlanOptions& options,
                                                 const Stages* stages) {
  ModelSpec spec = model;
  spec.mode = Mode::eval;
  const ModelGraph built = build_model(spec);
  auto network = std::make_unique<EvaluationNetwork>();
  SplitSettings parts = with_advice(split, backend);
  network->grid = split.grid.without_sharing();  // it uses running statistics
  const SplitTensors tensors = split_tensors(built.graph, network->grid);
  const Rewritten whole = drop_copies(tensors.rewritten.graph);
  parts.grid = network->grid.of_samples();
  const Rewritten cut = split_samples(whole.graph, parts);
  const Rewritten shared = share_tables(cut.graph, split.tables, false).rewritten;
  network->shares_tables = split.tables.ranks > 1 && !built.graph.with_role(Role::table).empty();
  Rewritten last = fuse_forward(shared.graph);
  std::vector<const Rewritten*> passes = {&tensors.rewritten, &whole, &cut, &shared, &last};
  const auto final_value = [&](Value v) {
    for (const Rewritten* pass : passes)
      if (v.valid()) v = pass->of[static_cast<size_t>(v.id)];
    return v;  // invalid: it is in another stage
  };
  Rewritten staged;
  if (stages && stages->count > 1) {
    staged = evaluation_stage(last, built, network->grid, *stages, final_value);
    passes.push_back(&staged);
  }
  const Rewritten heads = fuse_heads(passes.back()->graph, {});
  passes.push_back(&heads);
  const Graph& graph = heads.graph;
  if (options.variables) require_same(graph, *options.variables);
  PlanOptions own = options;
  own.threads = split.threads;
  own.tile_bytes = split.tile_bytes;
  network->plan = compile(graph, backend, own);
  network->plan.variables.set_slices(tensors.slices);
  for (const GraphInput& input : built.inputs)
    if (const Value value = final_value(input.value); value.valid())
      network->inputs.push_back({input.field, value});
  for (const ModelOutput& output : built.outputs)
    if (const Value value = final_value(output.prediction); value.valid()) {
      network->predictions.push_back(value);
      network->names.push_back(output.objective.name);
    }
  for (const ModelReading& reading : built.readings)
    if (const Value value = final_value(reading.value); value.valid()) {
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

}  // namespace tutti
