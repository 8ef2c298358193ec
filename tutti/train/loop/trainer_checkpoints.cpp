#include "tutti/train/loop/trainer_run.h"

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

CheckpointInfo TrainerRun::info_now() const {
  CheckpointInfo info{
      .step = step_,
      .epoch = step_ / sampler_.steps_per_epoch(),
      .epoch_position = step_ % sampler_.steps_per_epoch(),
      .seed = static_cast<uint64_t>(config_.run.seed),
      .replicas = replicas_.replicas(),
      .ranks = comm_.size(),
      .precision = std::string(to_string(config_.run.precision)),
      .plan_choices = network().training.options.choices.to_string(),
      .config = spec_.resolved_config,
      .run_id = place_.run_id,
      .optimizer = std::string(to_string(config_.optimizer.name)),
      .state_kinds = network().training.variables.state_kinds,
      .settings = settings_,
      .metrics = {{"wall_seconds", clock_.wall()}, {"train_seconds", clock_.train()}}};
  for (const auto& [name, value] : result_.metrics)
    if (std::isfinite(value)) info.metrics[name] = value;
  info.learned = learned_fields(target_fields(config_, *spec_.data.train));
  if (config_.run.patience > 0) patience_.save(kPatience, info.metrics);
  if (plateau_) plateau_->save(info.metrics);
  save_noise(info.metrics);
  rounds_->save(info.metrics);
  if (const auto seconds = rounds_->virtual_seconds()) info.metrics[kVirtualSeconds] = *seconds;
  if (exchange().verdict()) info.metrics[kCompressionPays] = *exchange().verdict();
  return info;
}

bool TrainerRun::needs_rank_files() {
  const bool needs = training_->weights().has_rows() || !network().compression.buckets.empty() ||
                     network().has_tables || spec_.data.canvases != nullptr;
  return grid_.stages() > 1 ? comm_.most(int{needs}) > 0 : needs;  // of stages some may
}

TrainerRun::Alike TrainerRun::export_alike() {
  return {training_->weights().export_model(shown_weights(), averaged_.data()), rounds_->state()};
}

void TrainerRun::write_alike(CheckpointWriter& writer, const Alike& alike) {
  CheckpointContent content{.info = info_now(), .weights = {}, .state = {}};
  for (const NamedTensor& tensor : alike.model) content.weights.push_back(tensor.ref());
  for (const NamedTensor& tensor : alike.state) content.state.push_back(tensor.ref());
  writer.write(content);
}

uint64_t TrainerRun::write_own(const std::filesystem::path& checkpoint, const RankFiles& files) {
  const std::vector<NamedTensor> rows = training_->weights().export_rows();
  std::vector<TensorRef> tensors = rounds_->own_state();
  for (const NamedTensor& tensor : rows) tensors.push_back(tensor.ref());
  const std::vector<TensorRef> tables = table_refs(training_->weights());
  tensors.insert(tensors.end(), tables.begin(), tables.end());
  const std::vector<NamedTensor> under_way = batches_->state();
  for (const NamedTensor& tensor : under_way) tensors.push_back(tensor.ref());
  return write_rank_file(checkpoint, files, comm_.rank(), tensors);
}

TrainerRun::Written TrainerRun::write_together(bool best) {
  std::optional<CheckpointWriter> writer;  // of rank 0
  const int64_t ranks = needs_rank_files() ? comm_.size() : 0;
  const std::string place = comm::decide(comm_, "beginning a checkpoint", [&] {
    reporter_->record().require_place();  // a folder that was removed is not made again
    writer.emplace(place_.checkpoints, info_now(), ranks);
    return writer->rank_files().id + '\0' + writer->path().string();
  });
  const size_t end = place.find('\0');
  const RankFiles files{ranks, place.substr(0, end)};
  uint64_t bytes = 0;
  Alike alike;
  // Of a replica of several ranks it is collective: none may have failed below meanwhile.
  const bool gathered = grid_.stages() > 1 || grid_.tensor() > 1;
  if (grid_.stages() > 1) {
    alike = export_alike();
    alike = {gather_stages(comm_, grid_, std::move(alike.model)),
             gather_stages(comm_, grid_, std::move(alike.state))};
  } else if (grid_.tensor() > 1 && grid_.group() == 0) {
    alike = export_alike();
  }
  comm::on_each(comm_, "writing a checkpoint", [&] {
    if (ranks > 0) bytes = write_own(place.substr(end + 1), files);
    if (!writer) return;
    if (!gathered) alike = export_alike();
    write_alike(*writer, alike);
    bytes += writer->bytes();
  });
  double all[] = {static_cast<double>(bytes)};
  comm_.sum(all);
  const std::string path = comm::decide(comm_, "publishing a checkpoint", [&] {
    return writer->publish(best, static_cast<int>(config_.checkpoint.keep)).string();
  });
  return {path, static_cast<int64_t>(all[0])};
}

void TrainerRun::write_checkpoint_now(bool best, bool ends) {
  const auto began = RunClock::Clock::now();
  const ScopedSpan span(spans(), span_name("checkpoint"), span_lane());
  settle();
  report_noise();  // what was measured since the last line is kept, too
  average_statistics();
  gather_shown();
  rounds_->collect_state();
  together_ = true;
  Written written;
  try {
    written = write_together(best);
  } catch (const IoError& error) {
    if (ends) throw IoError(fmt::format("{}; {}", error.what(), what_is_left()));
    if (first())
      log::warn("no checkpoint of step {}: {}; {}; training goes on to the next one", step_,
                error.what(), what_is_left());
  }
  together_ = false;
  const double seconds = RunClock::since(began);
  clock_.add_pause(seconds);
  checkpoint_seconds_ += seconds;
  if (written.path.empty()) return;
  left_.last = step_;
  if (spec_.checkpoint_written) spec_.checkpoint_written();
  if (best) keep_best(step_, quality());
  if (!first()) return;
  reporter_->record().append(CheckpointRecord{.epoch = epochs_done(),
                                              .step = step_,
                                              .path = written.path,
                                              .bytes = written.bytes,
                                              .seconds = seconds});
}

// The folder knows best: what was written may have been removed since. A branch has written nothing
// yet, and goes on from a checkpoint elsewhere. A folder that cannot be listed now is said to be
// so: this is a part of the message of another error, which it must not replace.
std::string TrainerRun::what_is_left() const try {
  int64_t last = newest_step(place_.checkpoints);
  // It may be whole, and only what points at it has failed.
  if (last == step_ && left_.last != step_)
    return fmt::format("the checkpoint of step {} itself is whole", step_);
  if (last < 0 && left_.last == first_step_) last = left_.last;
  if (last >= 0) return fmt::format("the last checkpoint, of step {}, is from before it", last);
  return left_.last < 0
             ? "there is no checkpoint yet"
             : fmt::format("there is no checkpoint in '{}' any more", place_.checkpoints);
} catch (const IntactFileError& error) {
  return error.what();
}

}  // namespace tutti
