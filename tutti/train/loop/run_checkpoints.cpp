#include "tutti/train/loop/run_checkpoints.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/keep/rank_file.h"
#include "tutti/train/network/stage_tensors.h"
#include "tutti/train/network/table_files.h"

namespace tutti {

CheckpointInfo RunCheckpoints::info_now() const {
  CheckpointInfo info{
      .step = run_.step,
      .epoch = run_.step / run_.shape.steps_per_epoch(),
      .epoch_position = run_.step % run_.shape.steps_per_epoch(),
      .seed = static_cast<uint64_t>(run_.config.run.seed),
      .replicas = run_.shape.replicas.replicas(),
      .ranks = run_.comm.size(),
      .precision = std::string(to_string(run_.config.run.precision)),
      .plan_choices = run_.network().training.options.choices.to_string(),
      .config = run_.spec.resolved_config,
      .run_id = run_.spec.place.run_id,
      .optimizer = std::string(to_string(run_.config.optimizer.name)),
      .state_kinds = run_.network().training.variables.state_kinds,
      .settings = run_.settings,
      .metrics = {{"wall_seconds", run_.clock.wall()}, {"train_seconds", run_.clock.train()}}};
  run_.goal.save(info.metrics);
  info.learned = learned_fields(target_fields(run_.config, *run_.spec.data.train));
  report_.save_noise(info.metrics);
  run_.rounds->save(info.metrics);
  if (const auto seconds = run_.rounds->virtual_seconds()) info.metrics[kVirtualSeconds] = *seconds;
  if (run_.exchange().verdict()) info.metrics[kCompressionPays] = *run_.exchange().verdict();
  run_.exchange().save_trial(info.metrics);
  return info;
}

bool needs_rank_files(Running& run) {
  const bool needs = run.training->weights().has_rows() ||
                     !run.network().compression.buckets.empty() || run.network().has_tables ||
                     run.spec.data.canvases != nullptr;
  return run.shape.grid.stages() > 1 ? run.comm.most(int{needs}) > 0 : needs;  // a stage may
}

CheckpointContent RunCheckpoints::content_now() {
  return {.info = {},
          .weights = run_.training->weights().model_tensors(evaluation_.weights(),
                                                            evaluation_.statistics()),
          .state = run_.rounds->state()};
}

CheckpointContent RunCheckpoints::gathered_content() {
  CheckpointContent content = content_now();
  for (std::vector<TensorRef>* const tensors : {&content.weights, &content.state}) {
    std::vector<NamedTensor> all = gather_stages(run_.comm, run_.shape.grid, materialise(*tensors));
    tensors->clear();
    for (NamedTensor& tensor : all) tensors->push_back(owned(std::move(tensor)));
  }
  return content;
}

uint64_t RunCheckpoints::write_own(const std::filesystem::path& checkpoint,
                                   const RankFiles& files) {
  const Weights& weights = run_.training->weights();
  std::vector<TensorRef> tensors = run_.rounds->own_state();
  const auto add = [&](std::vector<TensorRef> more) {
    std::ranges::move(more, std::back_inserter(tensors));
  };
  add(weights.row_tensors());
  add(table_refs(weights));
  for (NamedTensor& tensor : trainer_.state()) tensors.push_back(owned(std::move(tensor)));
  return write_rank_file(checkpoint, files, run_.comm.rank(), tensors);
}

RunCheckpoints::Written RunCheckpoints::write_together(bool best) {
  std::optional<CheckpointWriter> writer;  // on rank 0
  const int64_t ranks = needs_rank_files(run_) ? run_.comm.size() : 0;
  const std::string place = comm::decide(run_.comm, "beginning a checkpoint", [&] {
    run_.reporter->record().require_place();  // a folder that was removed is not made again
    writer.emplace(run_.spec.place.checkpoints, info_now(), ranks);
    return writer->rank_files().id + '\0' + writer->path().string();
  });
  const size_t end = place.find('\0');
  const RankFiles files{ranks, place.substr(0, end)};
  uint64_t bytes = 0;
  CheckpointContent content;
  // If several ranks hold a replica's tensors, gather them here, where messages may be sent.
  const PartGrid& grid = run_.shape.grid;
  const bool gathered = grid.stages() > 1 || grid.tensor() > 1;
  if (gathered && (grid.stages() > 1 || grid.group() == 0)) content = gathered_content();
  comm::on_each(run_.comm, "writing a checkpoint", [&] {
    if (ranks > 0) bytes = write_own(place.substr(end + 1), files);
    if (!writer) return;
    if (!gathered) content = content_now();
    content.info = info_now();
    writer->write(content);
    bytes += writer->bytes();
  });
  double all[] = {static_cast<double>(bytes)};
  run_.comm.sum(all);
  const std::string path = comm::decide(run_.comm, "publishing a checkpoint", [&] {
    return writer->publish(best, static_cast<int>(run_.config.checkpoint.keep)).string();
  });
  return {path, static_cast<int64_t>(all[0])};
}

void RunCheckpoints::write(bool best, bool ends) {
  const auto began = RunClock::Clock::now();
  const ScopedSpan span = run_.span("checkpoint");
  run_.settle();
  report_.report_noise();  // includes measurements since the last line
  evaluation_.gather();
  run_.rounds->collect_state();
  run_.exchange().combine_trial();
  run_.together = true;
  Written written;
  try {
    written = write_together(best);
  } catch (const IoError& error) {
    if (ends) throw IoError(fmt::format("{}; {}", error.what(), run_.what_is_left()));
    if (run_.first())
      log::warn("no checkpoint of step {}: {}; {}; training goes on to the next one", run_.step,
                error.what(), run_.what_is_left());
  }
  run_.together = false;
  const double seconds = RunClock::since(began);
  run_.clock.add_pause(seconds);
  run_.checkpoint_seconds += seconds;
  if (written.path.empty()) return;
  run_.left.last = run_.step;
  if (run_.spec.checkpoint_written) run_.spec.checkpoint_written();
  if (best) run_.keep_best(run_.step, run_.goal.quality());
  if (!run_.first()) return;
  run_.reporter->record().append(CheckpointRecord{.epoch = run_.epochs_done(),
                                                  .step = run_.step,
                                                  .path = written.path,
                                                  .bytes = written.bytes,
                                                  .seconds = seconds});
}

}  // namespace tutti
