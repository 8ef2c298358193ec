// Reports the gradient's noise scale in the record and in checkpoints.

#include <cmath>

#include "tutti/base/log.h"
#include "tutti/train/loop/run_report.h"

namespace tutti::train {
namespace {

constexpr const char* kNoise = "noise";

}  // namespace

void RunReport::start_noise(const keep::Checkpoint* resumed) {
  NoiseMeter* const meter = run_.exchange().noise();
  if (meter == nullptr) return;
  const std::map<std::string, double> metrics =
      resumed ? resumed->info.metrics : std::map<std::string, double>{};
  noise_.restore(kNoise, metrics);
  layer_noise_.resize(meter->names().size());
  for (size_t i = 0; i < layer_noise_.size(); ++i)
    layer_noise_[i].restore(fmt::format("{}.{}", kNoise, meter->names()[i]), metrics);
}

void RunReport::save_noise(std::map<std::string, double>& metrics) {
  report_noise();  // includes measurements since the last line
  noise_.save(kNoise, metrics);
  for (size_t i = 0; i < layer_noise_.size(); ++i)
    layer_noise_[i].save(fmt::format("{}.{}", kNoise, run_.exchange().noise()->names()[i]),
                         metrics);
}

void RunReport::report_noise() {
  NoiseMeter* const meter = run_.exchange().noise();
  if (meter == nullptr || !meter->any()) return;
  const NoiseMeter::Reading reading = meter->read();
  noise_.add(reading.all, reading.steps);
  trace::NoiseRecord line{.epoch = (run_.step - 1) / run_.shape.steps_per_epoch() + 1,
                          .step = run_.step,
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
  if (run_.first()) run_.reporter->record().append(std::move(line));
}

void RunReport::log_noise() const {
  if (const double batch = noise_.critical_batch(); std::isfinite(batch))
    log::info("gradient noise: critical batch {:.3g} samples, the batch is {}", batch,
              run_.shape.batch.global);
}

}  // namespace tutti::train
