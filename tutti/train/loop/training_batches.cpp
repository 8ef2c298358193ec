#include "tutti/base/log.h"
#include "tutti/keep/rank_file.h"
#include "tutti/train/loop/moving_fields.h"
#include "tutti/train/loop/round_trainer.h"

namespace tutti::train {
namespace {

MovingFieldsSpec moving_fields_spec(const config::RunConfig& config, const data::Sampler& sampler) {
  const auto along = [](const std::vector<int64_t>& axes) {
    return std::array<int64_t, 3>{axes[0], axes[1], axes[2]};
  };
  return {.deltas = along(config.tracing.deltas),
          .threshold = config.tracing.move_threshold,
          .seed = static_cast<uint64_t>(config.run.seed),
          .node_of = sampler.spec().node_of};
}

}  // namespace

std::unique_ptr<BatchSource> RoundTrainer::make_batches() {
  if (run_.network().batch().empty()) return std::make_unique<NoBatches>();
  if (!run_.spec.data.canvases) {
    const int64_t per_epoch = run_.shape.steps_per_epoch();
    const data::PipelineSpec pipeline{.threads = static_cast<int>(run_.config.data.readers),
                                      .slots = static_cast<int>(run_.config.data.prefetch)};
    if (run_.rounds->takes_several_steps()) {
      // The current gradient, and the two after it.
      constexpr int64_t kTickets = 3;
      return std::make_unique<DealtBatches>(*run_.spec.data.train, *writer_, run_.shape.sampler,
                                            pipeline, kTickets * run_.shape.accumulate);
    }
    auto order = std::make_unique<data::TrainingOrder>(
        run_.shape.sampler,
        data::TrainingStart{run_.step / per_epoch, run_.step % per_epoch,
                            run_.shape.replicas.owned().lo * run_.shape.accumulate,
                            run_.shape.replicas.local_count() * run_.shape.accumulate});
    return std::make_unique<ReadBatches>(*run_.spec.data.train, *writer_, std::move(order),
                                         pipeline);
  }
  const std::vector<data::BatchField> batch = run_.network().batch();
  auto fields = std::make_unique<MovingFields>(
      moving_fields_spec(run_.config, run_.shape.sampler), batch, *run_.spec.data.canvases,
      sample_writer(run_.config, *run_.spec.data.canvases,
                    canvas_fields(batch, *run_.spec.data.canvases)),
      run_.shape.batches);
  if (!run_.past.checkpoint)
    fields->begin();
  else if (run_.past.checkpoint->info.replicas == run_.shape.replicas.replicas()) {
    keep::RankFileReader files(*run_.past.checkpoint);
    fields->restore(files, exchange::ReplicaMap(run_.shape.replicas.replicas(), files.ranks(), 0)
                               .times(run_.shape.accumulate));
  } else {
    log::warn_once("seeds in flight begin anew: the checkpoint's are of {} replicas",
                   run_.past.checkpoint->info.replicas);
    fields->begin();
  }
  return fields;
}

/// Logs once that readers do not keep up.
void RoundTrainer::report_waiting() {
  const double reading = batches_->reading_seconds() - reading_before_;
  reading_before_ = batches_->reading_seconds();
  if (!run_.first() || waiting_logged_ || batches_->readers() == 0) return;
  const std::string line =
      waiting_line({run_.epoch.times.total, run_.epoch.times.data_wait, reading});
  waiting_logged_ = !line.empty();
  if (waiting_logged_) log::warn("{}", line);
}

}  // namespace tutti::train
