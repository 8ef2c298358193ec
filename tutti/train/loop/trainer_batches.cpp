#include "tutti/base/log.h"
#include "tutti/keep/rank_file.h"
#include "tutti/train/loop/moving_fields.h"
#include "tutti/train/loop/trainer_run.h"

namespace tutti {
namespace {

MovingFieldsSpec moving_fields_spec(const RunConfig& config, const data::Sampler& sampler) {
  const auto along = [](const std::vector<int64_t>& axes) {
    return std::array<int64_t, 3>{axes[0], axes[1], axes[2]};
  };
  return {.deltas = along(config.tracing.deltas),
          .threshold = config.tracing.move_threshold,
          .seed = static_cast<uint64_t>(config.run.seed),
          .node_of = sampler.spec().node_of};
}

}  // namespace

std::unique_ptr<BatchSource> TrainerRun::make_batches() {
  if (network().batch().empty()) return std::make_unique<NoBatches>();
  if (!spec_.data.canvases) {
    const int64_t per_epoch = sampler_.steps_per_epoch();
    data::PipelineSpec pipeline;
    pipeline.threads = static_cast<int>(config_.data.readers);
    pipeline.slots = static_cast<int>(config_.data.prefetch);
    if (rounds_->takes_several_steps()) {
      // The gradient that is being made, and the two behind it.
      constexpr int64_t kTickets = 3;
      return std::make_unique<DealtBatches>(*spec_.data.train, *training_batch_, sampler_, pipeline,
                                            kTickets * accumulate_);
    }
    auto order = std::make_unique<data::TrainingOrder>(
        sampler_, data::TrainingStart{step_ / per_epoch, step_ % per_epoch,
                                      replicas_.owned().lo * accumulate_,
                                      replicas_.local_count() * accumulate_});
    return std::make_unique<ReadBatches>(*spec_.data.train, *training_batch_, std::move(order),
                                         pipeline);
  }
  const std::vector<data::BatchField> batch = network().batch();
  auto fields = std::make_unique<MovingFields>(
      moving_fields_spec(config_, sampler_), batch, *spec_.data.canvases,
      sample_writer(config_, *spec_.data.canvases, canvas_fields(batch, *spec_.data.canvases)),
      turns_);
  if (!resumed_)
    fields->begin();
  else if (resumed_->info.replicas == replicas_.replicas()) {
    RankFileReader files(*resumed_);
    fields->restore(files, ReplicaMap(replicas_.replicas(), files.ranks(), 0).times(accumulate_));
  } else {
    log::warn_alike("seeds in flight begin anew: the checkpoint's are of {} replicas",
                    resumed_->info.replicas);
    fields->begin();
  }
  return fields;
}

/// Says once that readers do not keep up.
void TrainerRun::report_waiting() {
  const double reading = batches_->reading_seconds() - reading_before_;
  reading_before_ = batches_->reading_seconds();
  if (!first() || waiting_said_ || batches_->readers() == 0) return;
  const std::string line = waiting_line({epoch_times_.total, epoch_times_.data_wait, reading});
  waiting_said_ = !line.empty();
  if (waiting_said_) log::warn("{}", line);
}

}  // namespace tutti
