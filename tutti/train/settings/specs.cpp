#include "tutti/train/settings/specs.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/data/open/catalog.h"
#include "tutti/data/transform/derived_field.h"
#include "tutti/models/registry.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/units.h"

namespace tutti::train {
namespace {

/// Returns the model's own task if the configuration names none; for layers, it follows from
/// fields.
std::optional<models::TaskKind> task_of(const config::RunConfig& config) {
  if (config.model.task != config::ModelTask::automatic)
    return static_cast<models::TaskKind>(static_cast<int>(config.model.task) - 1);
  const models::ModelInfo& model = models::find_model(config.model.name);
  return model.takes_layers ? std::nullopt : std::optional(model.task);
}

/// Returns the number of classes; a field of numbers has as many outputs as numbers.
int64_t outputs_of(const data::Field& target) {
  return target.class_names.empty() ? target.elements() : std::ssize(target.class_names);
}

ops::SoftmaxCrossEntropyAttributes label_loss(const config::LossSection& loss) {
  return {.label_smoothing = static_cast<float>(loss.label_smoothing),
          .class_weights = {loss.class_weights.begin(), loss.class_weights.end()},
          .mean_over = loss.mean_over};
}
ops::PointwiseLossAttributes number_loss(const config::LossSection& loss) {
  return {.kind = loss.pointwise, .delta = static_cast<float>(loss.delta)};
}

/// Returns the named fields, else the one at `place`.
std::vector<data::Field> fields_or(const data::Dataset& dataset,
                                   const std::vector<std::string>& names, size_t place) {
  std::vector<data::Field> fields;
  for (const std::string& name : names) {
    if (std::ranges::find(fields, name, &data::Field::name) != fields.end())
      throw ConfigError(fmt::format("data.input or data.target names the field '{}' twice", name));
    fields.push_back(data::field_named(dataset, name));
  }
  if (!fields.empty()) return fields;
  if (place >= dataset.fields().size())
    throw ConfigError(
        "the data set has one field alone: name another one with data.target, or the same where "
        "the network is to give back what it reads");
  return {dataset.fields()[place]};
}

/// Returns data.input; if it is empty, the first field and any others that the model reads.
std::vector<std::string> input_names(const config::RunConfig& config,
                                     const data::Dataset& dataset) {
  const models::ModelInfo& model = models::find_model(config.model.name);
  if (!config.data.input.empty() || dataset.fields().empty()) return config.data.input;
  std::vector<std::string> names = {dataset.fields().front().name};
  for (const std::string& field : model.more_inputs)
    if (field != names.front()) names.push_back(field);  // else the model reports it
  for (const std::string& field : model.inputs_if_there)
    if (std::ranges::find(dataset.fields(), field, &data::Field::name) != dataset.fields().end())
      names.push_back(field);
  return names;
}

/// If the number of outputs comes from the target, its number of classes must be known.
void require_classes(const config::RunConfig& config, const data::Field& target) {
  const models::ModelInfo& model = models::find_model(config.model.name);
  if (model.takes_layers || model.build || config.model.classes > 0 ||
      !target.class_names.empty() || task_of(config) == models::TaskKind::regress)
    return;
  throw ConfigError(
      fmt::format("model '{}' is to learn the classes of the field '{}', and nothing says how many "
                  "there are: 'classes N' in its line of data.fields, or model.classes; model.task "
                  "= \"regress\" learns numbers",
                  config.model.name, target.name));
}

/// Returns the bytes of names that tokens represent; empty if no token has a name.
std::vector<int32_t> name_bytes(const std::vector<std::string>& names) {
  if (std::ranges::all_of(names, &std::string::empty)) return {};
  std::vector<int32_t> bytes;
  for (const std::string& name : names) bytes.push_back(static_cast<int32_t>(name.size()));
  return bytes;
}

/// Returns the field after its transforms.
models::ModelField placed_field(const data::Field& field,
                                const std::vector<data::FieldSteps>& steps) {
  const auto own = std::ranges::find(steps, field.name, &data::FieldSteps::field);
  return {.name = field.name,
          .sample = own == steps.end() ? field.shape : data::shape_after(field, *own),
          .classes = std::ssize(field.class_names),
          .rows = field.rows,
          .bags = field.bags,
          .class_bytes = name_bytes(field.class_names)};
}

/// Does the same for a learned field.
models::ModelField learned_field(const data::Field& field,
                                 const std::vector<data::FieldSteps>& steps) {
  models::ModelField placed = placed_field(field, steps);
  const auto own = std::ranges::find(steps, field.name, &data::FieldSteps::field);
  note_units(field, own == steps.end() ? data::FieldSteps{.field = field.name} : *own, placed);
  return placed;
}

}  // namespace

models::ModelSpec model_alone(const config::RunConfig& config) {
  return {.name = config.model.name,
          .task = task_of(config),
          .layers = config.model.layer,
          .loss = label_loss(config.loss),
          .pointwise_loss = number_loss(config.loss)};
}

std::vector<data::Field> target_fields(const config::RunConfig& config,
                                       const data::Dataset& dataset) {
  return fields_or(dataset, config.data.target, 1);
}

models::ModelSpec model_spec(const config::RunConfig& config, int64_t batch) {
  models::ModelSpec spec = model_alone(config);
  spec.batch = batch;
  spec.classes = config.model.classes;
  if (config.model.shortcut != config::Shortcut::automatic)
    spec.shortcut = config.model.shortcut == config::Shortcut::A ? models::ModelSpec::Shortcut::A
                                                                 : models::ModelSpec::Shortcut::B;
  spec.width = config.model.width;
  spec.hidden = config.model.hidden;
  spec.pooling = config.model.pooling;
  spec.interaction = config.model.interaction;
  spec.embeddings = config.model.embeddings;
  spec.depth = config.model.depth;
  spec.kernel = config.model.kernel;
  spec.heads = config.model.heads;
  spec.context = config.model.context;
  spec.key_heads = config.model.key_heads;
  spec.rotary_base = config.model.rotary_base;
  spec.tied = config.model.tied;
  spec.lora = {config.model.lora_rank, config.model.lora_alpha, config.model.lora_layers};
  if (config.model.dropout >= 0) spec.dropout = static_cast<float>(config.model.dropout);
  if (config.model.attention_dropout >= 0)
    spec.attention_dropout = static_cast<float>(config.model.attention_dropout);
  spec.activations = config.run.precision == config::Precision::bf16 ? DType::bf16 : DType::f32;
  return spec;
}

models::ModelSpec model_spec(const config::RunConfig& config, const data::Dataset& dataset,
                             int64_t batch) {
  models::ModelSpec spec = model_spec(config, batch);
  const std::vector<data::Field> inputs = fields_or(dataset, input_names(config, dataset), 0),
                                 targets = target_fields(config, dataset);
  const std::vector<data::FieldSteps> steps = field_steps(config.data);
  for (const data::Field& field : inputs) spec.inputs.push_back(placed_field(field, steps));
  for (const data::Field& field : targets) spec.targets.push_back(learned_field(field, steps));
  spec.input_field = spec.inputs.front().name;
  spec.input = spec.inputs.front().sample;
  spec.target_field = spec.targets.front().name;
  if (config.model.classes > 0 && spec.targets.front().classes > 0)
    spec.targets.front().classes = config.model.classes;
  require_classes(config, targets.front());
  spec.classes = config.model.classes > 0 ? config.model.classes : outputs_of(targets.front());
  if (const data::Field& target = targets.front();
      config.model.classes > 0 && config.model.classes < std::ssize(target.class_names))
    throw ConfigError(
        fmt::format("model.classes = {}, but the field '{}' has {} classes: give the "
                    "network an output for each, or leave model.classes out",
                    config.model.classes, target.name, target.class_names.size()));
  return spec;
}

split::PartGrid part_grid(const config::ParallelSection& parallel, int64_t ranks, int64_t rank) {
  const bool whole =
      parallel.batchnorm_group_size == 1 &&
      std::ranges::all_of(parallel.spatial, [](int64_t parts) { return parts == 1; });
  if (parallel.tensor > 1 && !whole)
    throw ConfigError(
        "parallel.tensor goes without parallel.spatial and parallel.batchnorm_group_size: ranks "
        "that share layers have whole samples, and share no statistics");
  if (parallel.sequence && parallel.tensor == 1)
    throw ConfigError(
        "parallel.sequence is for ranks that share layers: set parallel.tensor, or leave it out");
  if (parallel.tensor > 1)
    return split::PartGrid::of_tensors(parallel.tensor, static_cast<int>(ranks),
                                       static_cast<int>(rank), parallel.sequence);
  return {parallel.spatial, parallel.batchnorm_group_size, static_cast<int>(ranks),
          static_cast<int>(rank), parallel.pipeline};
}

split::SplitSettings split_settings(const config::RunConfig& config) {
  // A device is a team of one whose tile is the whole batch, as its back end advises.
  const bool device = on_device(config.run);
  return {.threads = device ? 1 : static_cast<int>(config.run.threads),
          .tile_bytes = device ? 0 : static_cast<size_t>(config.plan.tile_bytes),
          .slabs = config.plan.slabs};
}

NetworkSpec network_spec(const config::RunConfig& config, const data::Dataset& dataset,
                         int64_t batch) {
  NetworkSpec spec;
  spec.training.model = model_spec(config, dataset, batch);
  spec.training.optimizer = config.optimizer;
  spec.training.freeze = config.model.freeze;
  spec.training.compression = config::compression_policy(config.comm);
  spec.training.sharded_update = config.comm.sharded_update;
  spec.training.bucket_bytes = static_cast<size_t>(config.comm.bucket_bytes);
  spec.training.split = split_settings(config);
  spec.plan = config.plan;
  spec.plan.measure = measures_kernels(config);
  spec.copied_bytes = static_cast<size_t>(config.checkpoint.memory);
  return spec;
}

exchange::ExchangeSettings exchange_settings(const config::CommSection& comm) {
  return {.reproducible = comm.reproducible,
          .priority = comm.priority,
          .chunk_bytes = static_cast<size_t>(comm.chunk_bytes),
          .algorithm = comm.algorithm,
          .sharded = comm.sharded_update};
}

LearningRateSchedule learning_rate_schedule(const config::RunConfig& config,
                                            int64_t steps_per_epoch, int64_t global_batch) {
  return LearningRateSchedule(
      config.schedule, {.rate = config.optimizer.lr,
                        .total_steps = config.run.epochs > 0 ? config.run.epochs * steps_per_epoch
                                                             : config.run.max_steps,
                        .steps_per_epoch = steps_per_epoch,
                        .global_batch = global_batch});
}

std::vector<data::FieldSteps> field_steps(const config::DataSection& data) {
  std::vector<data::FieldSteps> steps;
  for (const std::string& text : data.transforms) steps.push_back(data::parse_steps(text));
  for (const std::string& text : data::known_dataset(data.dataset).transforms) {
    data::FieldSteps own = data::parse_steps(text);
    if (std::ranges::find(steps, own.field, &data::FieldSteps::field) != steps.end()) continue;
    // A seed, which is in the middle, may be turned like its image.
    const auto image = std::ranges::find(steps, "image", &data::FieldSteps::field);
    if (own.field == "seed" && image != steps.end()) own.placement = image->placement;
    steps.push_back(std::move(own));
  }
  return steps;
}

data::SampleWriter sample_writer(const config::RunConfig& config, const data::Dataset& dataset,
                                 const std::vector<data::BatchField>& batch) {
  return data::SampleWriter(dataset, batch, field_steps(config.data),
                            static_cast<uint64_t>(config.run.seed));
}

}  // namespace tutti::train
