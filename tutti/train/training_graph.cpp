#include "tutti/train/training_graph.h"

#include <array>

#include "tutti/base/name_pattern.h"
#include "tutti/models/registry.h"
#include "tutti/ops/embedding.h"
#include "tutti/ops/exchange.h"
#include "tutti/ops/fuse.h"
#include "tutti/ops/parts.h"
#include "tutti/parallel/compression_policy.h"

namespace tutti {
namespace {

/// The parameters of each bucket, in the order in which backward produces their gradients.
std::vector<std::vector<Value>> bucket_parameters(const Graph& graph,
                                                  const std::vector<Value>& produced,
                                                  const CompressionPolicy& compression,
                                                  size_t bucket_bytes) {
  std::vector<CompressibleEntry> entries;
  for (const Value p : produced)
    entries.push_back({{graph[p].name, graph.type(p).desc.bytes()}, graph.shape(p)});
  std::vector<std::vector<Value>> buckets;
  for (const Bucket& bucket :
       partition_by_compression(compression, entries, bucket_bytes).buckets.buckets) {
    std::vector<Value>& members = buckets.emplace_back();
    for (const int i : bucket.members) members.push_back(produced[static_cast<size_t>(i)]);
  }
  return buckets;
}

Value gradient_of(const Graph& graph, Value parameter) {
  for (const Value g : graph.with_role(Role::gradient))
    if (graph[g].of == parameter) return g;
  CHECK(false, "parameter '{}' has no gradient", graph[parameter].name);
}

/// Values of a channel in the batch that this node takes statistics of; 0 of another node.
int64_t values_of_statistics(const Graph& graph, const Node& node) {
  if (const auto* merge = dynamic_cast<const MergeMoments*>(node.op.get()))
    return merge->group().values();
  if (dynamic_cast<const BatchNormStats*>(node.op.get()) == nullptr) return 0;
  const Shape& y = graph.shape(node.in[0]);
  return y[0] * y.elements_from(2);
}

/// One value is its own mean: it says nothing of a variance, and normalised it is 0.
void require_statistics(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (values_of_statistics(graph, node) == 1)
      throw ConfigError(fmt::format(
          "layer '{}': a batch norm of batches with one value in a channel, which have no "
          "variance: take a larger batch.local, let replicas share statistics "
          "(parallel.batchnorm_group_size), or freeze a layer's statistics (statistics = "
          "\"running\", momentum = 0)",
          node.name.substr(0, node.name.rfind('.'))));
}

/// What cannot be done with tables yet is refused here; more than one rank or turn by TrainingStep.
void require_table_rules(const TrainingGraphSpec& spec) {
  const auto refuse = [](bool given, std::string_view what) {
    if (given)
      throw ConfigError(fmt::format(
          "the model looks rows up in tables, which are updated by plain gradient descent alone: "
          "{}, or leave the tables as they are (model.freeze)",
          what));
  };
  const OptimizerSettings& o = spec.optimizer;
  refuse(o.kind != OptimizerSettings::Kind::sgd, "take optimizer.name = \"sgd\"");
  refuse(o.momentum != 0, "take optimizer.momentum = 0");
  refuse(o.weight_decay != 0, "take optimizer.weight_decay = 0");
  refuse(o.clip_norm != 0 || o.clip_value != 0, "leave optimizer.clip_norm and clip_value out");
  refuse(o.average != 0, "leave optimizer.ema out");
  refuse(o.sharded, "leave comm.sharded_update out");
  refuse(spec.split.grid.parts() > 1, "leave parallel.spatial out");
}

/// Rows of tables have no bucket: nothing of them is exchanged.
void update_tables(Graph& graph, const std::vector<RowGradient>& tables,
                   const UpdateScalars& scalars) {
  for (const RowGradient& rows : tables) {
    const auto* const lookup = dynamic_cast<const EmbeddingBag*>(rows.lookup.get());
    CHECK(lookup, "no update of the table '{}'", graph[rows.table].name);
    graph.append(
        "update " + graph[rows.table].name, std::make_shared<TableUpdate>(lookup->columns()),
        std::array{scalars.learning_rate, scalars.gradient_scale, rows.table, rows.dy, rows.rows});
  }
}

}  // namespace

std::vector<Value> trained_parameters(const Graph& graph, std::span<const std::string> freeze) {
  std::vector<std::string> names;
  std::vector<Value> trained;
  for (const Value p : graph.with_role(Role::parameter)) {
    names.push_back(graph[p].name);
    if (!fits_any(freeze, graph[p].name)) trained.push_back(p);
  }
  for (const std::string& pattern : freeze) require_fit("model.freeze", pattern, names);
  if (trained.empty()) throw ConfigError("model.freeze leaves no parameter that could be trained");
  return trained;
}

TrainingGraph make_training_graph(const TrainingGraphSpec& spec) {
  ModelSpec model = spec.model;
  model.mode = Mode::train;
  const ModelGraph built = build_model(model);

  TrainingGraph training;
  SplitSettings split = spec.split;
  split.whole_outputs = false;
  const Rewritten cut = split_samples(built.graph, split);
  require_statistics(cut.graph);
  Rewritten fused = fuse_forward(cut.graph);
  const auto at = [](const Rewritten& rewritten, Value v) {
    return rewritten.of[static_cast<size_t>(v.id)];
  };
  std::vector<Value> losses;
  for (const Value loss : built.losses) losses.push_back(at(fused, at(cut, loss)));
  const size_t first_backward = fused.graph.nodes().size();
  std::vector<RowGradient> tables;
  differentiate(fused.graph, losses, trained_parameters(fused.graph, spec.freeze), &tables);
  if (!tables.empty()) require_table_rules(spec);
  const Rewritten lean = recompute_activations(fused.graph, first_backward);
  const Rewritten summed = fold_row_sums(lean.graph);
  Rewritten folded = fold_residual_sums(summed.graph);
  const auto differentiated = [&](Value v) { return at(folded, at(summed, at(lean, v))); };
  const auto final_value = [&](Value v) { return differentiated(at(fused, at(cut, v))); };
  for (const auto& some : {built.inputs, built.targets})
    for (const GraphInput& input : some)
      training.inputs.push_back({input.field, final_value(input.value), input.classes});
  for (const Value loss : built.losses) training.losses.push_back(final_value(loss));
  for (const ModelOutput& output : built.outputs)
    training.predictions.push_back(split.grid.parts() > 1 ? Value{}
                                                          : final_value(output.prediction));
  training.graph = std::move(folded.graph);

  Graph& graph = training.graph;
  std::vector<Value> produced;
  for (const Value g : graph.with_role(Role::gradient)) produced.push_back(graph[g].of);
  const std::vector<std::vector<Value>> buckets =
      bucket_parameters(graph, produced, spec.compression, spec.bucket_bytes);
  for (size_t b = 0; b < buckets.size(); ++b) {
    std::vector<Value> gradients;
    for (const Value p : buckets[b]) gradients.push_back(gradient_of(graph, p));
    graph.append("bucket " + std::to_string(b),
                 std::make_shared<AllReduceGradients>(static_cast<int>(b), spec.optimizer.sharded),
                 gradients);
  }
  const UpdateScalars scalars = add_update(graph, buckets, spec.optimizer);
  for (RowGradient& rows : tables)
    for (Value* const v : {&rows.table, &rows.rows, &rows.dy}) *v = differentiated(*v);
  update_tables(graph, tables, scalars);
  for (const RowGradient& rows : tables) training.tables.push_back(rows.table);
  training.lr = scalars.learning_rate;
  training.gradient_scale = scalars.gradient_scale;
  training.gradient_norm = scalars.gradient_norm;
  return training;
}

}  // namespace tutti
