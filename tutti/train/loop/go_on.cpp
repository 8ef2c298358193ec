// Restores a run's state from the checkpoint that it continues.

#include <cmath>
#include <filesystem>

#include "tutti/comm/control/agree.h"
#include "tutti/train/loop/run_checkpoints.h"

namespace tutti::train {
namespace {

/// Reads the earlier run's state from the record. Rank 0 reads it for all.
EarlierPart read_earlier(const Running& run, const keep::CheckpointInfo& checkpoint) {
  return earlier_part_from_text(comm::decide(run.comm, "reading the record of the run before", [&] {
    const std::string record =
        (std::filesystem::path(run.spec.place.directory) / trace::kRecordFile).string();
    std::error_code none;
    const bool known = run.spec.place.goes_on && std::filesystem::exists(record, none);
    return to_text(earlier_part(checkpoint,
                                known ? trace::read_readable(record).log : trace::RunLog{},
                                run.goal.goal.in_record()));
  }));
}

}  // namespace

void go_on_from(const keep::Checkpoint& checkpoint, Running& run) {
  run.step = run.left.last = checkpoint.info.step;
  // Use the checkpoint's own name, even if a link or a path with a trailing slash was given.
  run.past.went_on_from = std::filesystem::canonical(checkpoint.path);
  for (const auto& metric : run.goal.goal.metrics)
    if (const std::string name(metric->name()); checkpoint.info.metrics.contains(name))
      run.goal.metrics[name] = checkpoint.info.metrics.at(name);
  run.past.earlier = read_earlier(run, checkpoint.info);
  run.evaluation_seconds = run.past.earlier.eval_seconds;
  run.checkpoint_seconds = run.past.earlier.checkpoint_seconds;
  // After the target was lowered, any evaluation may be the one that reaches it.
  run.goal.reached = run.past.earlier.reached || run.goal.goal.reached_by(run.goal.quality());
  const std::string best =
      comm::decide(run.comm, "looking for the best checkpoint", [&]() -> std::string {
        const auto path = keep::find_best(run.spec.place.checkpoints);
        if (!path) return "none";
        if (keep::is_abandoned(*path) && !keep::is_abandoned(*run.past.went_on_from)) return "";
        const keep::CheckpointInfo info = keep::open_checkpoint(*path).info;
        const auto value = info.metrics.find(std::string(run.goal.goal.metric->name()));
        if (info.step > run.step || value == info.metrics.end()) return "";
        return fmt::format("{} {}", info.step, value->second);
      });
  if (best.empty()) return;
  if (best != "none") run.keep_best(std::stoll(best), std::stod(best.substr(best.find(' '))));
  // A run that was killed right after a checkpoint has not marked it as best yet.
  if (!run.config.checkpoint.best || !run.past.earlier.evaluated ||
      keep::is_abandoned(*run.past.went_on_from) || !std::isfinite(run.goal.quality()) ||
      !run.goal.goal.better(run.goal.quality(), run.left.best_value))
    return;
  run.keep_best(run.step, run.goal.quality());
  comm::on_each(run.comm, "marking the best checkpoint", [&] {
    if (run.first()) keep::mark_best(*run.past.went_on_from);
  });
}

}  // namespace tutti::train
