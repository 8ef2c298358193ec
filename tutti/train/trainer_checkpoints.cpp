#include "tutti/train/trainer_run.h"

#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/agree.h"
#include "tutti/train/resume.h"

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
      .plan_choices = network_->training.options.choices.to_string(),
      .config = spec_.resolved_config,
      .run_id = place_.run_id,
      .optimizer = std::string(to_string(config_.optimizer.name)),
      .state_kinds = network_->training.variables.state_kinds,
      .settings = settings_,
      .metrics = {{"wall_seconds", clock_.wall()}, {"train_seconds", clock_.train()}}};
  if (std::isfinite(result_.accuracy)) info.metrics["accuracy"] = result_.accuracy;
  if (std::isfinite(result_.loss)) info.metrics["loss"] = result_.loss;
  if (exchange_->verdict()) info.metrics[kCompressionPays] = *exchange_->verdict();
  return info;
}

std::string TrainerRun::write_files(const std::vector<NamedTensor>& statistics,
                                    const std::vector<NamedTensor>& compression, bool best) {
  const std::vector<NamedTensor> model = weights_->export_model(averaged_.data()),
                                 state = weights_->export_state();
  CheckpointContent content{.info = info_now(), .weights = {}, .state = {}, .best = best};
  for (const NamedTensor& tensor : model) content.weights.push_back(tensor.ref());
  for (const auto* list : {&state, &statistics, &compression})
    for (const NamedTensor& tensor : *list) content.state.push_back(tensor.ref());
  return write_checkpoint(place_.checkpoints, content, static_cast<int>(config_.checkpoint.keep))
      .string();
}

void TrainerRun::write_checkpoint_now(bool best, bool ends) {
  const auto began = RunClock::Clock::now();
  const ScopedSpan span(spans(), span_name("checkpoint"), span_lane());
  executor_->settle();
  average_statistics();
  exchange_->collect_state(weights_->state());
  const std::vector<NamedTensor> statistics = gather_statistics(*weights_, replicas_, comm_),
                                 compression = exchange_->collect_compression();
  together_ = true;
  const std::string path = comm::decide(comm_, "writing a checkpoint", [&]() -> std::string {
    try {
      return write_files(statistics, compression, best);
    } catch (const IoError& error) {
      if (ends) throw IoError(fmt::format("{}; {}", error.what(), what_is_left()));
      log::warn("no checkpoint of step {}: {}; {}; training goes on to the next one", step_,
                error.what(), what_is_left());
      return "";
    }
  });
  together_ = false;
  const double seconds = RunClock::since(began);
  clock_.add_pause(seconds);
  checkpoint_seconds_ += seconds;
  if (path.empty()) return;
  left_.last = step_;
  if (spec_.checkpoint_written) spec_.checkpoint_written();
  if (best) {
    left_.best = step_;
    left_.best_accuracy = result_.accuracy;
  }
  if (!first()) return;
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const auto size = entry.file_size(error);
    if (error) break;
    bytes += static_cast<int64_t>(size);
  }
  if (error) throw IoError(fmt::format("{}: cannot be read: {}", path, error.message()));
  reporter_->record().append(CheckpointRecord{
      .epoch = epochs_done(), .step = step_, .path = path, .bytes = bytes, .seconds = seconds});
}

std::string TrainerRun::what_is_left() const {
  return left_.last < 0
             ? "there is no checkpoint yet"
             : fmt::format("the last checkpoint, of step {}, is from before it", left_.last);
}

}  // namespace tutti
