#include "tutti/train/settings/pipeline_check.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/ops/parts.h"

namespace tutti::train {

void check_pipeline(const config::RunConfig& config) {
  const int64_t stages = config.parallel.pipeline;
  if (stages == 1) return;
  const auto refuse = [&](bool given, std::string_view what, std::string_view why) {
    if (given)
      throw ConfigError(
          fmt::format("parallel.pipeline = {} goes without {}: {}", stages, what, why));
  };
  refuse(std::ranges::any_of(config.parallel.spatial, [](int64_t parts) { return parts > 1; }),
         "parallel.spatial", "ranks share either samples or layers");
  refuse(config.parallel.tensor > 1, "parallel.tensor",
         "stages of replicas whose layers ranks share are not built");
  refuse(config.parallel.batchnorm_group_size > 1, "parallel.batchnorm_group_size",
         "its sums would make micro-batches of several replicas wait for each other");
  refuse(config.comm.sharded_update, "comm.sharded_update",
         "a stage has its share of the optimizer's state already");
  refuse(config.comm.compression != "none", "comm.compression",
         "what it has not sent is not kept by stages yet");
  refuse(config.sync.scheme != "step", fmt::format("sync.scheme = \"{}\"", config.sync.scheme),
         "replicas of several ranks are not built to train apart");
  refuse(config.model.lora_rank > 0, "model.lora_rank",
         "a stage does not know whether others have layers that are trained beside given ones");
  refuse(config.optimizer.clip_norm > 0, "optimizer.clip_norm",
         "the norm of the whole gradient would have to be summed over stages, which is not built; "
         "optimizer.clip_value clips element by element");
  refuse(config.data.dataset == "neurons", "data.dataset = \"neurons\"",
         "its next batch depends on the predictions of the last one");
  refuse(config.data.quarantine > 0, "data.quarantine",
         "stages would have to agree on each sample that is left out");
  refuse(!config.replay.machine.empty(), "replay.machine",
         "the virtual clock knows replicas of one rank alone");
}

namespace {

/// Returns the bytes that a micro-batch sends to all other stages.
double bytes_sent(const graph::Graph& graph) {
  double bytes = 0;
  for (const graph::Node& node : graph.nodes())
    if (const auto* exchange = dynamic_cast<const ops::ExchangeStages*>(node.op.get()))
      for (const ops::ExchangeParts::Give& give : exchange->gives())
        bytes +=
            static_cast<double>(graph.type(node.in[static_cast<size_t>(give.input)]).desc.bytes());
  return bytes;
}

}  // namespace

std::string stages_text(TrainingGraphSpec spec) {
  const split::PartGrid grid = spec.split.grid;
  std::vector<graph::Graph> graphs;
  double flop = 0;
  for (int stage = 0; stage < grid.stages(); ++stage) {
    spec.split.grid = grid.with_stage(stage);
    flop += graphs.emplace_back(make_training_graph(spec).graph).flop();
  }
  std::string text;
  for (size_t stage = 0; stage < graphs.size(); ++stage)
    text += fmt::format(
        "stage {}: {:.1f} % of the operations, {} parameters, sends {:.1f} KiB a micro-batch\n",
        stage, 100 * graphs[stage].flop() / flop, graphs[stage].parameter_count(),
        bytes_sent(graphs[stage]) / 1024);
  return text;
}

std::string pipeline_line(const config::RunConfig& config) {
  const auto stages = static_cast<int>(config.parallel.pipeline),
             batches = static_cast<int>(config.batch.accumulate);
  return fmt::format(
      "{} stages take {} micro-batches of a step by {}: a stage is idle for {:.1f} % of it, where "
      "all are equally fast{}",
      stages, batches, config::to_string(config.parallel.order),
      100 * split::pipeline_bubble(stages, batches),
      batches < stages ? "; more batch.accumulate would keep them busy" : "");
}

}  // namespace tutti::train
