#include "tutti/train/settings/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/transport/shaped_channel.h"
#include "tutti/data/arrays/field_line.h"
#include "tutti/data/transform/steps.h"
#include "tutti/exchange/compression_policy.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/pipeline_check.h"
#include "tutti/train/settings/slow_rank.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/settings/sync_scheme.h"

namespace tutti::train {
namespace {

void require_relation(bool good, std::string_view what) {
  if (!good) throw ConfigError(std::string(what));
}

/// Parses values that have parsers elsewhere, so that a wrong word is found before anything starts.
void require_words(const config::RunConfig& config) {
  const config::CommSection& comm = config.comm;
  for (const std::string& text : config.data.transforms) data::parse_steps(text);
  data::parse_field_lines(config.data.fields);
  if (config.model.library.empty()) (void)goal_of(config);  // else models are not known yet
  (void)parameter_lines(config.optimizer);
  const auto check = [](std::string_view key, const std::string& text, auto&& parse) {
    try {
      if (!text.empty()) parse(text);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", key, error.what()));
    }
  };
  check("comm.shape", comm.shape, [](const std::string& text) { comm::LinkShape::parse(text); });
  check("comm.algorithm", comm.algorithm,
        [](const std::string& text) { comm::algorithm_named(text); });
}

void require_arrays(const config::DataSection& data) {
  const bool given = !data.fields.empty() || !data.train_files.empty() ||
                     !data.validation_files.empty() || !data.test_files.empty() ||
                     !data.statistics.empty();
  if (data.dataset == "neurons")
    return require_relation(data.statistics.empty() && data.validation == 0,
                            "data.dataset = \"neurons\" has neither data.statistics nor "
                            "data.validation: name volumes in data.validation_files, and numbers "
                            "in the steps of data.transforms");
  if (data.dataset == "clicks")
    return require_relation(data.fields.empty() && data.statistics.empty(),
                            "data.dataset = \"clicks\" has neither data.fields nor "
                            "data.statistics: its fields are dense, label and categories");
  if (config::is_text(data))
    return require_relation(
        data.fields.empty() && data.statistics.empty() && data.classes == 0,
        "data.dataset = \"text\" and \"tokens\" have neither data.fields nor data.statistics nor "
        "data.classes: their fields are tokens and next, and the vocabulary says how many there "
        "are");
  if (data.dataset != "arrays")
    return require_relation(!given,
                            "data.fields, data.train_files, data.validation_files, data.test_files "
                            "and data.statistics need data.dataset = \"arrays\" (or, but for "
                            "statistics, \"neurons\"; or, "
                            "of these, files alone, \"clicks\", \"text\" or \"tokens\")");
  require_relation(!data.fields.empty() && !data.train_files.empty(),
                   "data.dataset = \"arrays\" needs data.fields and data.train_files: 'tutti data "
                   "inspect PATH' writes both for a file or folder");
  require_relation(data.classes == 0,
                   "data.classes is not for data.dataset = \"arrays\": say 'classes N' in the line "
                   "of the field");
}

void require_length_data_and_schedule(const config::RunConfig& c) {
  require_relation(c.run.epochs > 0 || c.run.max_steps > 0,
                   "run.epochs and run.max_steps are both 0: nothing would end the run, give one");
  require_arrays(c.data);
  require_relation(c.schedule.warmup_epochs == 0 || c.schedule.warmup_steps == 0,
                   "schedule.warmup_epochs and schedule.warmup_steps: give one of the two");
  require_relation(c.schedule.name != config::ScheduleKind::steps || !c.schedule.milestones.empty(),
                   "schedule.name = \"steps\" needs schedule.milestones");
  require_relation(c.data.validation < 1 || c.data.validation == std::floor(c.data.validation),
                   "data.validation is a fraction below 1 or a whole number of samples");
  require_relation(c.data.validation != 1,
                   "data.validation = 1: a fraction lies below 1, and a number of samples is 2 or "
                   "more");
  require_relation(c.run.patience == 0 || c.run.eval_every > 0,
                   "run.patience counts evaluations: it needs run.eval_every above 0");
  require_relation(c.schedule.name != config::ScheduleKind::plateau || c.run.eval_every > 0,
                   "schedule.name = \"plateau\" looks at evaluations: it needs run.eval_every "
                   "above 0");
  require_relation(c.schedule.factors.empty() || c.schedule.name == config::ScheduleKind::steps,
                   "schedule.factors needs schedule.name = \"steps\"");
  require_relation(
      c.schedule.factors.empty() || c.schedule.factors.size() == c.schedule.milestones.size(),
      "schedule.factors needs as many factors as schedule.milestones has milestones");
  require_relation(std::adjacent_find(c.schedule.milestones.begin(), c.schedule.milestones.end(),
                                      std::greater_equal<>{}) == c.schedule.milestones.end(),
                   "schedule.milestones must rise, without repeats");
}

void require_patterns(std::string_view key, std::span<const std::string> patterns) {
  require_relation(std::ranges::find(patterns, "") == patterns.end(),
                   fmt::format("{} has an empty pattern: it would match nothing", key));
}

void require_model(const config::ModelSection& model) {
  require_relation(model.name != "layers" || !model.layer.empty(),
                   "model.name = \"layers\" needs layers: write [[model.layer]] for each");
  require_relation(model.name == "layers" || model.layer.empty(),
                   "model.name names a network and [[model.layer]] lists another: give one of the "
                   "two");
  require_patterns("model.freeze", model.freeze);
  require_patterns("model.weights_except", model.weights_except);
  require_patterns("model.lora_layers", model.lora_layers);
  require_relation(model.lora_rank == 0 || !model.lora_layers.empty(),
                   "model.lora_rank needs model.lora_layers: the linear layers that get it, as in "
                   "[\"*.q_proj\", \"*.v_proj\"]");
  require_relation(model.weights_except.empty() || !model.weights.empty(),
                   "model.weights_except needs model.weights: without it all weights are new");
}

void require_optimizer(const config::OptimizerSection& optimizer) {
  require_relation(
      !optimizer.nesterov ||
          (optimizer.name == config::OptimizerKind::sgd && optimizer.momentum > 0),
      "optimizer.nesterov = true needs optimizer.name = \"sgd\" and optimizer.momentum > 0");
  require_relation(optimizer.ema > 0 || optimizer.ema_from == 0,
                   "optimizer.ema_from needs optimizer.ema: without it nothing is averaged");
  require_relation(optimizer.beta1 < 1 && optimizer.beta2 < 1,
                   "optimizer.beta1 and optimizer.beta2 must be below 1");
  require_relation(optimizer.clip_value == 0 || (optimizer.name != config::OptimizerKind::lars &&
                                                 optimizer.name != config::OptimizerKind::lamb),
                   "optimizer.clip_value is not for lars and lamb: they follow the norm of each "
                   "parameter's gradient");
  require_relation(optimizer.rho < 1, "optimizer.rho must be below 1");
  require_relation(
      optimizer.eps > 0 || optimizer.name == config::OptimizerKind::sgd ||
          optimizer.name == config::OptimizerKind::lars,
      "optimizer.eps must be above 0 for adam, adamw and lamb: a weight whose gradient has "
      "always been 0 would become 0 / 0");
}

void require_tracing(const config::RunConfig& c) {
  const config::TracingSection& tracing = c.tracing;
  require_relation(tracing.fov.size() == 3 && tracing.deltas.size() == 3,
                   "tracing.fov and tracing.deltas have three numbers each: along z, y and x");
  for (size_t a = 0; a < 3; ++a) {
    require_relation(tracing.fov[a] % 2 == 1,
                     "tracing.fov: a field of view has a voxel in its middle, so its extents are "
                     "odd");
    require_relation(tracing.deltas[a] <= tracing.fov[a] / 2,
                     "tracing.deltas: a move leads to a voxel that the field of view has seen, so "
                     "it is at most half an extent of tracing.fov");
  }
  require_relation(std::ranges::adjacent_find(tracing.partitions, std::greater_equal<>{}) ==
                       tracing.partitions.end(),
                   "tracing.partitions must rise, without repeats");
  if (c.data.dataset != "neurons") return;
  require_relation(c.parallel.spatial.empty() ||
                       std::ranges::all_of(c.parallel.spatial, [](auto n) { return n == 1; }),
                   "parallel.spatial: ranks cannot share the fields of view of data.dataset = "
                   "\"neurons\"; let each rank have replicas of its own");
}

/// Refuses settings that ranks which share layers do not support yet.
void require_tensor(const config::RunConfig& c) {
  require_relation(c.parallel.tensor > 1 || !c.parallel.sequence,
                   "parallel.sequence is for ranks that share layers: set parallel.tensor, or "
                   "leave it out");
  if (c.parallel.tensor == 1) return;
  (void)part_grid(c.parallel, c.parallel.tensor, 0);
  const auto refuse = [&](bool given, std::string_view what, std::string_view why) {
    if (given)
      throw ConfigError(
          fmt::format("parallel.tensor = {} goes without {}: {}", c.parallel.tensor, what, why));
  };
  refuse(c.comm.sharded_update, "comm.sharded_update",
         "weights in slices are not built to be sharded once more");
  refuse(c.comm.compression != "none", "comm.compression",
         "it is not built for gradients of slices");
  refuse(c.data.dataset == "neurons", "data.dataset = \"neurons\"",
         "ranks cannot share its fields of view");
}

void require_compression(const config::CommSection& comm) {
  const exchange::CompressionPolicy compression = config::compression_policy(comm);
  require_relation(comm.compression_ramp_steps == 0 || !compression.compression.compresses() ||
                       compression.compression.sparse(),
                   "comm.compression_ramp_steps raises the share of elements left out: it needs "
                   "comm.compression = \"topk:RATIO\" or \"hitopk:RATIO\"");
  require_patterns("comm.compression_exclude", comm.compression_exclude);
}

}  // namespace

void validate(const config::RunConfig& config) {
  require_words(config);
  require_length_data_and_schedule(config);
  require_model(config.model);
  require_optimizer(config.optimizer);
  require_tracing(config);
  require_compression(config.comm);
  require_tensor(config);
  check_sync(config);
  check_pipeline(config);
  (void)parse_slow(config.run);
}

}  // namespace tutti::train
