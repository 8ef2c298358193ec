#include "tutti/train/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

std::vector<float> floats(const std::vector<double>& values, const std::vector<float>& own) {
  return values.empty() ? own : std::vector<float>(values.begin(), values.end());
}

}  // namespace

ModelSpec model_spec(const RunConfig& config, const data::Dataset& dataset, int64_t batch) {
  ModelSpec spec;
  spec.name = config.model.name;
  const data::ImageShape image = dataset.shape();
  spec.input = {image.channels, image.height, image.width};
  spec.batch = batch;
  spec.classes = config.model.classes > 0 ? config.model.classes : dataset.classes();
  if (config.model.shortcut != Shortcut::automatic)
    spec.shortcut =
        config.model.shortcut == Shortcut::A ? ModelSpec::Shortcut::A : ModelSpec::Shortcut::B;
  spec.width = config.model.width;
  spec.hidden = config.model.hidden;
  spec.activations = config.run.precision == Precision::bf16 ? DType::bf16 : DType::f32;
  spec.loss.label_smoothing = static_cast<float>(config.loss.label_smoothing);
  return spec;
}

NetworkSpec network_spec(const RunConfig& config, const data::Dataset& dataset, int64_t batch) {
  NetworkSpec spec;
  spec.training.model = model_spec(config, dataset, batch);
  spec.training.optimizer = optimizer_settings(config.optimizer);
  spec.training.compression = compression_policy(config.comm);
  spec.training.bucket_bytes = static_cast<size_t>(config.comm.bucket_bytes);
  spec.threads = static_cast<int>(config.run.threads);
  spec.layout = to_string(config.plan.layout);
  spec.measure = config.plan.measure;
  return spec;
}

ExchangeSettings exchange_settings(const CommSection& comm) {
  return {.reproducible = comm.reproducible,
          .priority = comm.priority,
          .chunk_bytes = static_cast<size_t>(comm.chunk_bytes),
          .algorithm = comm.algorithm,
          .sharded = comm.sharded_update};
}

OptimizerSettings optimizer_settings(const OptimizerSection& section) {
  OptimizerSettings settings;
  settings.kind = static_cast<OptimizerSettings::Kind>(section.name);
  settings.momentum = section.momentum;
  settings.nesterov = section.nesterov;
  settings.weight_decay = section.weight_decay;
  settings.exclude_bias = std::ranges::find(section.exclude, "bias") != section.exclude.end();
  settings.exclude_norm = std::ranges::find(section.exclude, "norm") != section.exclude.end();
  settings.beta1 = section.beta1;
  settings.beta2 = section.beta2;
  settings.eps = section.eps;
  settings.trust = section.trust;
  return settings;
}

LearningRateSettings learning_rate_settings(const RunConfig& config, int64_t steps_per_epoch,
                                            int64_t global_batch) {
  const ScheduleSection& section = config.schedule;
  LearningRateSettings settings;
  settings.kind = static_cast<LearningRateSettings::Kind>(section.name);
  settings.rate = config.optimizer.lr;
  settings.total_steps =
      config.run.epochs > 0 ? config.run.epochs * steps_per_epoch : config.run.max_steps;
  settings.steps_per_epoch = steps_per_epoch;
  settings.warmup_steps =
      section.warmup_steps > 0
          ? section.warmup_steps
          : std::llround(section.warmup_epochs * static_cast<double>(steps_per_epoch));
  settings.warmup_factor = section.warmup_factor;
  settings.milestones = section.milestones;
  settings.milestones_in_epochs = section.milestone_unit == MilestoneUnit::epochs;
  settings.gamma = section.gamma;
  settings.annealing = section.annealing == Annealing::linear
                           ? LearningRateSettings::Annealing::linear
                           : LearningRateSettings::Annealing::cosine;
  settings.peak_at = section.peak_at;
  settings.initial_factor = section.initial_factor;
  settings.final_factor = section.final_factor;
  settings.scaling = static_cast<LearningRateSettings::Scaling>(section.scale_with_batch);
  settings.base_batch = section.base_batch;
  settings.global_batch = global_batch;
  return settings;
}

data::AugmentSpec augment_spec(const RunConfig& config, const data::ChannelStatistics& own) {
  data::AugmentSpec spec;
  spec.seed = static_cast<uint64_t>(config.run.seed);
  spec.pad = config.data.crop ? static_cast<int>(config.data.pad) : 0;
  spec.flip = config.data.flip;
  spec.normalization = {floats(config.data.mean, own.mean), floats(config.data.std, own.deviation)};
  return spec;
}

int64_t total_steps(const RunSection& run, int64_t steps_per_epoch) {
  const int64_t by_epochs = run.epochs > 0 ? run.epochs * steps_per_epoch : INT64_MAX;
  return std::min(by_epochs, run.max_steps > 0 ? run.max_steps : INT64_MAX);
}

RunLimit run_limit(const RunSection& run, int64_t steps_per_epoch, int64_t step) {
  const int64_t total = total_steps(run, steps_per_epoch);
  const std::string epochs = fmt::format("run.epochs = {}", run.epochs),
                    steps = fmt::format("run.max_steps = {}", run.max_steps);
  const int64_t epochs_done = (step + steps_per_epoch - 1) / steps_per_epoch;
  if (run.max_steps != total)
    return {epochs + " ends", fmt::format(" --epochs N   (N above {})", epochs_done)};
  if (run.epochs * steps_per_epoch != total)
    return {steps + " ends", fmt::format(" --max-steps N   (N above {})", step)};
  return {fmt::format("{} and {} end", epochs, steps),
          fmt::format(" --epochs N --max-steps M   (N above {}, M above {})", epochs_done, step)};
}

}  // namespace tutti
