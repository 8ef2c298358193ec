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
  return info;
}

bool needs_rank_files(Running& run) {
  const bool needs = run.training->weights().has_rows() ||
                     !run.network().compression.buckets.empty() || run.network().has_tables ||
                     run.spec.data.canvases != nullptr;
  return run.shape.grid.stages() > 1 ? run.comm.most(int{needs}) > 0 : needs;  // of stages some may
}

RunCheckpoints::Alike RunCheckpoints::export_alike() {
  return {run_.training->weights().export_model(evaluation_.weights(), evaluation_.statistics()),
          run_.rounds->state()};
}

void RunCheckpoints::write_alike(CheckpointWriter& writer, const Alike& alike) {
  CheckpointContent content{.info = info_now(), .weights = {}, .state = {}};
  for (const NamedTensor& tensor : alike.model) content.weights.push_back(tensor.ref());
  for (const NamedTensor& tensor : alike.state) content.state.push_back(tensor.ref());
  writer.write(content);
}

uint64_t RunCheckpoints::write_own(const std::filesystem::path& checkpoint,
                                   const RankFiles& files) {
  const std::vector<NamedTensor> rows = run_.training->weights().export_rows();
  std::vector<TensorRef> tensors = run_.rounds->own_state();
  for (const NamedTensor& tensor : rows) tensors.push_back(tensor.ref());
  const std::vector<TensorRef> tables = table_refs(run_.training->weights());
  tensors.insert(tensors.end(), tables.begin(), tables.end());
  const std::vector<NamedTensor> under_way = trainer_.state();
  for (const NamedTensor& tensor : under_way) tensors.push_back(tensor.ref());
  return write_rank_file(checkpoint, files, run_.comm.rank(), tensors);
}

RunCheckpoints::Written RunCheckpoints::write_together(bool best) {
  std::optional<CheckpointWriter> writer;  // of rank 0
  const int64_t ranks = needs_rank_files(run_) ? run_.comm.size() : 0;
  const std::string place = comm::decide(run_.comm, "beginning a checkpoint", [&] {
    run_.reporter->record().require_place();  // a folder that was removed is not made again
    writer.emplace(run_.spec.place.checkpoints, info_now(), ranks);
    return writer->rank_files().id + '\0' + writer->path().string();
  });
  const size_t end = place.find('\0');
  const RankFiles files{ranks, place.substr(0, end)};
  uint64_t bytes = 0;
  Alike alike;
  // Of a replica of several ranks it is collective: none may have failed below meanwhile.
  const bool gathered = run_.shape.grid.stages() > 1 || run_.shape.grid.tensor() > 1;
  if (run_.shape.grid.stages() > 1) {
    alike = export_alike();
    alike = {gather_stages(run_.comm, run_.shape.grid, std::move(alike.model)),
             gather_stages(run_.comm, run_.shape.grid, std::move(alike.state))};
  } else if (run_.shape.grid.tensor() > 1 && run_.shape.grid.group() == 0) {
    alike = export_alike();
  }
  comm::on_each(run_.comm, "writing a checkpoint", [&] {
    if (ranks > 0) bytes = write_own(place.substr(end + 1), files);
    if (!writer) return;
    if (!gathered) alike = export_alike();
    write_alike(*writer, alike);
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
  report_.report_noise();  // what was measured since the last line is kept, too
  evaluation_.gather();
  run_.rounds->collect_state();
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
