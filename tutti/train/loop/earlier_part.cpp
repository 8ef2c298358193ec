#include "tutti/train/loop/earlier_part.h"

#include <algorithm>

#include "tutti/base/json.h"

namespace tutti::train {
namespace {

/// Sums the seconds of events up to a step; later events are void.
template <class Event>
double seconds_up_to(const std::vector<Event>& events, int64_t step) {
  double sum = 0;
  for (const Event& event : events)
    if (event.step <= step && event.seconds > 0) sum += event.seconds;  // skips unmeasured ones
  return sum;
}

}  // namespace

EarlierPart earlier_part(const keep::CheckpointInfo& checkpoint, const trace::RunLog& log,
                         const std::optional<trace::Target>& target) {
  const auto metric = [&](const char* name) {
    const auto at = checkpoint.metrics.find(name);
    return at == checkpoint.metrics.end() ? 0.0 : at->second;
  };
  EarlierPart part{.wall_seconds = metric(kWallSeconds),
                   .train_seconds = metric(kTrainSeconds),
                   .eval_seconds = seconds_up_to(log.evals, checkpoint.step),
                   .checkpoint_seconds = seconds_up_to(log.checkpoints, checkpoint.step)};
  part.wall_seconds =
      std::max(part.wall_seconds, part.train_seconds + part.eval_seconds + part.checkpoint_seconds);
  // After a failure the clocks include steps that are computed again.
  if (log.stop && log.stop->steps == checkpoint.step &&
      log.stop->status != trace::RunStatus::failed) {
    part.wall_seconds = log.stop->wall_seconds;
    part.train_seconds = log.stop->train_seconds;
    part.eval_seconds = log.stop->eval_seconds;
    part.checkpoint_seconds = log.stop->checkpoint_seconds;
  }
  part.tested = log.test && log.test->step == checkpoint.step;
  part.evaluated =
      std::ranges::find(log.evals, checkpoint.step, &trace::EvalRecord::step) != log.evals.end();
  if (!target) return part;
  for (const trace::EvalRecord& eval : log.evals) {
    const double value = eval.value(target->metric);
    if (eval.step > checkpoint.step || !target->reached_by(value)) continue;
    if (!part.reached) part.reached = {.epoch = eval.epoch, .value = value, .best = value};
    part.reached->best = target->higher_is_better ? std::max(part.reached->best, value)
                                                  : std::min(part.reached->best, value);
  }
  return part;
}

std::string to_text(const EarlierPart& part) {
  Json json = {part.wall_seconds,       part.train_seconds, part.eval_seconds,
               part.checkpoint_seconds, part.tested,        part.evaluated};
  if (part.reached) {
    json.push_back(part.reached->epoch);
    json.push_back(part.reached->value);
    json.push_back(part.reached->best);
  }
  return print_json(json);
}

EarlierPart earlier_part_from_text(const std::string& text) {
  const Json json = parse_json(text);
  EarlierPart part{.wall_seconds = json.at(0),
                   .train_seconds = json.at(1),
                   .eval_seconds = json.at(2),
                   .checkpoint_seconds = json.at(3),
                   .tested = json.at(4),
                   .evaluated = json.at(5)};
  if (json.size() > 6)
    part.reached = {.epoch = json.at(6), .value = json.at(7), .best = json.at(8)};
  return part;
}

}  // namespace tutti::train
