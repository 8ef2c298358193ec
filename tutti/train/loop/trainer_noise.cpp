#include <cmath>

#include "tutti/base/log.h"
#include "tutti/train/loop/trainer_run.h"

namespace tutti {

NoiseSettings TrainerRun::measured_noise() const {
  const bool measured =
      turns_.replicas() > 1 &&
      rounds_kind(config_, devices_, replicas_.replicas(), has_clock()) == RoundsKind::every_step &&
      grid_.peers() == 1 && config_.comm.compression == "none";
  const int64_t every = config_.run.noise_every;
  const bool asked = config_.run.noise_layers || (every > 0 && every != RunSection{}.noise_every);
  if (asked && (!measured || every == 0) && first())
    log::warn(
        "run.noise_every and run.noise_layers have no effect here: the noise of gradients is "
        "measured where a step has several batches, whose mean all follow (docs/noise.md)");
  return {.every = measured ? every : 0,
          .layers = config_.run.noise_layers,
          .turn_batch = batch_.local};
}

void TrainerRun::restore_noise(const std::map<std::string, double>& metrics) {
  NoiseMeter* const meter = exchange().noise();
  if (meter == nullptr) return;
  noise_.restore(kNoise, metrics);
  layer_noise_.resize(meter->names().size());
  for (size_t i = 0; i < layer_noise_.size(); ++i)
    layer_noise_[i].restore(fmt::format("{}.{}", kNoise, meter->names()[i]), metrics);
}

void TrainerRun::save_noise(std::map<std::string, double>& metrics) const {
  noise_.save(kNoise, metrics);
  for (size_t i = 0; i < layer_noise_.size(); ++i)
    layer_noise_[i].save(fmt::format("{}.{}", kNoise, exchange().noise()->names()[i]), metrics);
}

void TrainerRun::report_noise() {
  NoiseMeter* const meter = exchange().noise();
  if (meter == nullptr || !meter->any()) return;
  const NoiseMeter::Reading reading = meter->read();
  noise_.add(reading.all, reading.steps);
  NoiseRecord line{.epoch = (step_ - 1) / sampler_.steps_per_epoch() + 1,
                   .step = step_,
                   .measured = reading.steps,
                   .small_squares = reading.small_squares,
                   .large_squares = reading.large_squares,
                   .signal = reading.all.signal,
                   .noise = reading.all.noise,
                   .critical_batch = noise_.critical_batch()};
  for (size_t i = 0; i < layer_noise_.size(); ++i) {
    layer_noise_[i].add(reading.layers[i], reading.steps);
    line.layers[meter->names()[i]] = layer_noise_[i].critical_batch();
  }
  if (first()) reporter_->record().append(std::move(line));
}

void TrainerRun::log_noise() const {
  if (const double batch = noise_.critical_batch(); std::isfinite(batch))
    log::info("gradient noise: critical batch {:.3g} samples, the batch is {}", batch,
              batch_.global);
}

}  // namespace tutti
