#include "tutti/train/network/training_graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "tutti/base/name_pattern.h"
#include "tutti/exchange/compression_policy.h"
#include "tutti/models/lora.h"
#include "tutti/models/registry.h"
#include "tutti/ops/exchange.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/rank_sums.h"
#include "tutti/ops/sequence/embedding.h"

namespace tutti::train {
namespace {

/// Returns the parameters of each bucket, in the order in which backward produces their gradients;
/// after them, those in buckets of their own.
std::vector<std::vector<graph::Value>> bucket_parameters(
    const graph::Graph& graph, std::vector<graph::Value> produced,
    const exchange::CompressionPolicy& compression, size_t bucket_bytes,
    std::span<const split::SharedParameter> alone) {
  const auto shared = std::ranges::stable_partition(produced, [&](graph::Value p) {
    return std::ranges::find(alone, graph[p].name, &split::SharedParameter::name) == alone.end();
  });
  const std::vector<graph::Value> apart(shared.begin(), shared.end());
  produced.erase(shared.begin(), shared.end());
  std::vector<exchange::CompressibleEntry> entries;
  for (const graph::Value p : produced)
    entries.push_back({{graph[p].name, graph.type(p).desc.bytes()}, graph.shape(p)});
  std::vector<std::vector<graph::Value>> buckets;
  for (const exchange::Bucket& bucket :
       exchange::partition_by_compression(compression, entries, bucket_bytes).buckets.buckets) {
    std::vector<graph::Value>& members = buckets.emplace_back();
    for (const int i : bucket.members) members.push_back(produced[static_cast<size_t>(i)]);
  }
  for (const graph::Value p : apart) buckets.push_back({p});
  return buckets;
}

graph::Value gradient_of(const graph::Graph& graph, graph::Value parameter) {
  for (const graph::Value g : graph.with_role(graph::Role::gradient))
    if (graph[g].of == parameter) return g;
  CHECK(false, "parameter '{}' has no gradient", graph[parameter].name);
}

/// Returns the number of values per channel in the batch over which this node computes statistics;
/// 0 for other nodes.
int64_t values_of_statistics(const graph::Graph& graph, const graph::Node& node) {
  if (const auto* merge = dynamic_cast<const ops::MergeMoments*>(node.op.get()))
    return merge->group().values();
  if (dynamic_cast<const ops::BatchNormStats*>(node.op.get()) == nullptr) return 0;
  const Shape& y = graph.shape(node.in[0]);
  return y[0] * y.elements_from(2);
}

/// Refuses batch norms over a single value: its variance and its normalised value are 0.
void require_statistics(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes())
    if (values_of_statistics(graph, node) == 1)
      throw ConfigError(fmt::format(
          "layer '{}': a batch norm of batches with one value in a channel, which have no "
          "variance: take a larger batch.local, let replicas share statistics "
          "(parallel.batchnorm_group_size), or freeze a layer's statistics (statistics = "
          "\"running\", momentum = 0)",
          node.name.substr(0, node.name.rfind('.'))));
}

/// Refuses settings that do not work with tables yet.
void require_table_rules(const TrainingGraphSpec& spec) {
  const auto refuse = [](bool given, std::string_view key) {
    if (given)
      throw ConfigError(fmt::format(
          "the model looks rows up in tables, for which {} is not built yet: leave it out", key));
  };
  refuse(spec.sharded_update, "comm.sharded_update");
  refuse(spec.split.grid.parts() > 1, "parallel.spatial");
  refuse(spec.split.grid.stages() > 1, "parallel.pipeline");
  refuse(spec.split.grid.peers() > 1, "parallel.batchnorm_group_size");
}

/// Appends the updates of tables. Rows of tables have no bucket: they are not summed.
class TableUpdates {
 public:
  TableUpdates(TrainingGraph& training, const TrainingGraphSpec& spec, const UpdateScalars& scalars)
      : training_(training), micro_batches_(spec.micro_batches),
        lookups_(std::max(static_cast<int>(spec.split.tables.ranks), 1)),
        rule_{spec.optimizer.tables, static_cast<float>(spec.optimizer.tables_eps)},
        scalars_(scalars) {}

  /// Adds one table's update. `lookups` are all of its lookups, by the rank whose samples they
  /// serve.
  void add(const std::vector<graph::RowGradient>& lookups) {
    graph::Graph& graph = training_.graph;
    const graph::RowGradient& first = lookups.front();
    const auto* const lookup = dynamic_cast<const ops::EmbeddingBag*>(first.lookup.get());
    CHECK(lookup, "no update of the table '{}'", graph[first.table].name);
    if (static_cast<int>(lookups.size()) != lookups_)
      throw ConfigError(
          fmt::format("the table '{}' is looked up {} times: one lookup of a table is built",
                      graph[first.table].name, lookups.size()));
    std::vector<graph::Value> in{scalars_.learning_rate, scalars_.gradient_scale, first.table};
    if (const int64_t width = rule_.state_width(graph.shape(first.table)[1]); width > 0)
      in.push_back(graph.table_state(graph[first.table].name + ".sum", first.table, width));
    std::vector<graph::Value> dy, rows, weights;
    for (const graph::RowGradient& one : lookups) {
      dy.push_back(one.dy);
      rows.push_back(one.rows);
      if (lookup->bag().weighted) weights.push_back(one.weights);
    }
    for (const auto* values : {&dy, &rows, &weights})
      if (!values->empty()) in.push_back(kept(*values));
    graph.append("update " + graph[first.table].name,
                 std::make_shared<ops::TableUpdate>(lookup->bag(), rule_), in);
  }

 private:
  /// Returns the values of all micro-batches.
  graph::Value kept(const std::vector<graph::Value>& of_rank) {
    if (micro_batches_ == 1) return of_rank.front();
    graph::Graph& graph = training_.graph;
    for (const KeptMicroBatches& known : training_.kept)
      if (known.of_rank == of_rank) return known.input;
    for (const graph::Value v : of_rank)
      if (graph[v].producer >= 0 && std::ranges::find(graph.outputs(), v) == graph.outputs().end())
        graph.mark_output(v);
    TensorDesc desc = graph.type(of_rank.front()).desc;
    desc.shape[0] *= micro_batches_;
    const graph::Value input = graph.input(graph[of_rank.front()].name + " of all", desc, false);
    training_.kept.push_back({input, of_rank});
    return input;
  }

  TrainingGraph& training_;
  const int micro_batches_, lookups_;  // lookups_: per table, one for each rank's samples
  const ops::TableRule rule_;
  const UpdateScalars scalars_;
};

/// Groups gradients of lookups by table; a table's gradients are ordered by rank.
std::vector<std::vector<graph::RowGradient>> by_table(
    std::vector<graph::RowGradient> all, const std::map<const graph::Op*, int>& rank_of) {
  std::ranges::sort(all, {}, [&](const graph::RowGradient& one) {
    const auto rank = rank_of.find(one.lookup.get());
    return std::pair(one.table.id, rank == rank_of.end() ? 0 : rank->second);
  });
  std::vector<std::vector<graph::RowGradient>> tables;
  for (const graph::RowGradient& one : all) {
    if (tables.empty() || !(tables.back().front().table == one.table)) tables.emplace_back();
    tables.back().push_back(one);
  }
  return tables;
}

bool is_lora(const graph::Graph& graph, graph::Value parameter) {
  return fits_pattern(models::kLoraNames, graph[parameter].name);
}

/// Returns the parameters and tables that no pattern matches; with LoRA, only LoRA's.
std::vector<graph::Value> not_frozen(const graph::Graph& graph,
                                     std::span<const std::string> freeze) {
  const bool lora = std::ranges::any_of(graph.with_role(graph::Role::parameter),
                                        [&](graph::Value p) { return is_lora(graph, p); });
  std::vector<graph::Value> trained;
  for (const graph::Role role : {graph::Role::parameter, graph::Role::table})
    for (const graph::Value p : graph.with_role(role))
      if (!fits_any(freeze, graph[p].name) && (!lora || is_lora(graph, p))) trained.push_back(p);
  return trained;
}

/// Returns which results of a forward graph have a gradient. `training` is a copy: the whole
/// model's lines of decay and rates are checked in it, because a stage has only some of the
/// parameters.
std::vector<bool> trained_results(graph::Graph training, const std::vector<graph::Value>& losses,
                                  const TrainingGraphSpec& spec) {
  const std::vector<graph::Value> trained = not_frozen(training, spec.freeze);
  std::vector<graph::Value> gradients;
  const std::vector<graph::Value> produced =
      ops::differentiate(training, losses, trained, nullptr, &gradients);
  add_update(training, std::array{produced}, spec.optimizer);
  std::vector<bool> has;
  for (const graph::Value g : gradients) has.push_back(g.valid());
  return has;
}

/// Whether drop_copies keeps the node.
bool stays_in_plan(const graph::Node& node) {
  return dynamic_cast<const ops::RuleOnly*>(node.op.get()) == nullptr;
}

std::vector<graph::Value> all_values(const graph::Graph& graph) {
  std::vector<graph::Value> all(graph.values().size());
  for (size_t i = 0; i < all.size(); ++i) all[i].id = static_cast<int32_t>(i);
  return all;
}

/// Returns this rank's stage of a forward graph; a graph of one stage is returned unchanged.
ops::Rewritten stage_of(const graph::Graph& forward, const std::vector<graph::Value>& losses,
                        const TrainingGraphSpec& spec, TrainingGraph& training) {
  const split::PartGrid& grid = spec.split.grid;
  if (grid.stages() == 1) return {forward, all_values(forward)};
  training.stages = split::cut_into_stages(forward, grid.stages());
  ops::Rewritten taken = split::take_stage(forward, training.stages, grid.stage(),
                                           trained_results(forward, losses, spec));
  int number = 0;
  for (const auto& [name, stages] : training.stages.of_variable) {
    const bool here = std::ranges::find(stages, grid.stage()) != stages.end();
    if (!here) training.elsewhere.push_back(name);
    if (stages.size() == 1 || fits_any(spec.freeze, name)) continue;
    if (here) training.shared.push_back({name, stages, number});
    ++number;
  }
  if (not_frozen(taken.graph, spec.freeze).empty())
    throw ConfigError(fmt::format(
        "model.freeze leaves no parameter that stage {} of parallel.pipeline = {} could train: "
        "take fewer stages",
        grid.stage(), grid.stages()));
  return taken;
}

}  // namespace

std::vector<graph::Value> trained_parameters(const graph::Graph& graph,
                                             std::span<const std::string> freeze) {
  std::vector<std::string> names;
  for (const graph::Role role : {graph::Role::parameter, graph::Role::table})
    for (const graph::Value p : graph.with_role(role)) names.push_back(graph[p].name);
  const std::vector<graph::Value> trained = not_frozen(graph, freeze);
  for (const std::string& pattern : freeze) require_fit("model.freeze", pattern, names);
  if (trained.empty()) throw ConfigError("model.freeze leaves no parameter that could be trained");
  return trained;
}

TrainingGraph make_training_graph(const TrainingGraphSpec& spec) {
  models::ModelSpec model = spec.model;
  model.mode = ops::Mode::train;
  const models::ModelGraph built = models::build_model(model);

  TrainingGraph training;
  training.parameters = built.graph.parameter_count();
  for (const graph::Value p : trained_parameters(built.graph, spec.freeze))
    training.trained += built.graph.shape(p).elements();
  training.has_tables = !built.graph.with_role(graph::Role::table).empty();
  training.shares_tables = training.has_tables && spec.split.tables.ranks > 1;
  if (training.has_tables) require_table_rules(spec);
  split::SplitTensors tensors = split::split_tensors(built.graph, spec.split.grid);
  split::SplitSettings split = spec.split;
  split.whole_outputs = false;
  split.grid = spec.split.grid.of_samples();
  const ops::Rewritten cut = split::split_samples(tensors.rewritten.graph, split);
  require_statistics(cut.graph);
  const split::SharedTables shared = split::share_tables(cut.graph, spec.split.tables, true);
  ops::Rewritten fused = ops::fuse_forward(shared.rewritten.graph);
  const auto at = [](const ops::Rewritten& rewritten, graph::Value v) {
    return rewritten.of[static_cast<size_t>(v.id)];
  };
  const auto forward = [&](graph::Value v) {
    return at(fused, at(shared.rewritten, at(cut, at(tensors.rewritten, v))));
  };
  std::vector<graph::Value> losses, own_losses;
  for (const graph::Value loss : built.losses) losses.push_back(forward(loss));
  ops::Rewritten staged = stage_of(fused.graph, losses, spec, training);
  staged =
      ops::in_turn(staged, ops::fuse_heads(staged.graph, not_frozen(staged.graph, spec.freeze)));
  for (const graph::Value loss : losses)
    if (const graph::Value own = at(staged, loss); own.valid()) own_losses.push_back(own);
  const auto first_backward =
      static_cast<size_t>(std::ranges::count_if(staged.graph.nodes(), stays_in_plan));
  std::vector<graph::RowGradient> tables;
  ops::differentiate(staged.graph, own_losses, not_frozen(staged.graph, spec.freeze), &tables);
  const ops::Rewritten direct = ops::drop_copies(staged.graph);
  const ops::Rewritten lean =
      ops::recompute_activations(direct.graph, spec.repeats_cheap_ops ? first_backward : 0);
  const ops::Rewritten summed = ops::fold_row_sums(lean.graph);
  const ops::Rewritten tied = ops::fold_lookup_sums(summed.graph);
  ops::Rewritten folded = ops::fold_residual_sums(tied.graph);
  if (spec.joins_moves) folded = ops::in_turn(folded, ops::join_moves(folded.graph));
  ops::Rewritten shared_out = ops::share_in_team(folded.graph, spec.split.threads);
  const auto differentiated = [&](graph::Value v) {
    return at(shared_out, at(folded, at(tied, at(summed, at(lean, at(direct, v))))));
  };
  const auto final_value = [&](graph::Value v) {
    const graph::Value own = at(staged, forward(v));
    return own.valid() ? differentiated(own) : graph::Value{};  // invalid: another stage has it
  };
  for (const auto& some : {built.inputs, built.targets})
    for (const models::GraphInput& input : some)
      if (const graph::Value own = final_value(input.value); own.valid())
        training.inputs.push_back({input.field, own, input.classes});
  for (const graph::Value loss : own_losses) training.losses.push_back(differentiated(loss));
  for (const models::ModelOutput& output : built.outputs)
    training.predictions.push_back(split.grid.parts() > 1 ? graph::Value{}
                                                          : final_value(output.prediction));
  training.graph = std::move(shared_out.graph);

  graph::Graph& graph = training.graph;
  std::vector<graph::Value> produced;
  for (const graph::Value g : graph.with_role(graph::Role::gradient))
    produced.push_back(graph[g].of);
  const std::vector<std::vector<graph::Value>> buckets =
      bucket_parameters(graph, produced, spec.compression, spec.bucket_bytes, training.shared);
  for (size_t b = 0; b < buckets.size(); ++b) {
    std::vector<graph::Value> gradients;
    for (const graph::Value p : buckets[b]) gradients.push_back(gradient_of(graph, p));
    graph.append(
        "bucket " + std::to_string(b),
        std::make_shared<ops::AllReduceGradients>(static_cast<int>(b), spec.sharded_update),
        gradients);
  }
  training.slices = std::move(tensors.slices);
  training.tensors = std::move(tensors.text);
  const UpdateScalars scalars = add_update(graph, buckets, spec.optimizer,
                                           {.sharded = spec.sharded_update,
                                            .partial = spec.split.grid.stages() > 1,
                                            .slices = training.slices});
  for (graph::RowGradient& one : tables)
    for (graph::Value* const v : {&one.table, &one.rows, &one.weights, &one.dy})
      if (v->valid()) *v = differentiated(*v);
  TableUpdates updates(training, spec, scalars);
  for (const auto& of_table : by_table(std::move(tables), shared.rank_of)) updates.add(of_table);
  training.lr = scalars.learning_rate;
  training.gradient_scale = scalars.gradient_scale;
  training.gradient_norm = scalars.gradient_norm;
  return training;
}

}  // namespace tutti::train
