#include "tutti/models/block/model_builder.h"

#include <algorithm>
#include <span>

namespace tutti::models {
namespace {

std::string known_fields(std::string_view first, const std::vector<ModelField>& fields) {
  std::string names(first);
  for (const ModelField& field : fields)
    if (field.name != first) names += ", " + field.name;
  return names;
}

Shape batch_of(int64_t batch, std::span<const int64_t> sample) {
  std::vector<int64_t> extents = {batch};
  extents.insert(extents.end(), sample.begin(), sample.end());
  return Shape(std::span<const int64_t>(extents));
}

/// Returns the target's type, which follows from the prediction's.
TensorDesc target_desc(TaskKind task, const Shape& prediction) {
  const int64_t batch = prediction[0];
  switch (task) {
    case TaskKind::classify: return {DType::i32, {batch}, {}};
    case TaskKind::segment:
      return {DType::i32, batch_of(batch, std::span(prediction.begin() + 2, prediction.end())), {}};
    case TaskKind::regress: return {DType::f32, prediction, {}};
    case TaskKind::language: return {DType::i32, {batch, prediction[2]}, {}};
  }
  CHECK(false, "task {}", static_cast<int>(task));
}

void check_prediction(const ModelSpec& spec, TaskKind task, const Shape& prediction) {
  const bool maps = prediction.rank() > 2;
  const bool fits = task == TaskKind::classify   ? prediction.rank() == 2
                    : task == TaskKind::segment  ? maps
                    : task == TaskKind::language ? false
                                                 : prediction.rank() >= 2;
  require(fits,
          "model '{}' predicts {} of a sample: it cannot {}, but it works with "
          "model.task = \"{}\" or "
          "\"regress\"",
          spec.name, maps ? "a value at each position" : "one row of numbers", name_of(task),
          maps ? "segment" : "classify");
}

}  // namespace

ModelField input_named(const ModelSpec& spec, const std::string& field) {
  const auto found = std::ranges::find(spec.inputs, field, &ModelField::name);
  if (found != spec.inputs.end()) return *found;
  if (field == spec.input_field) return {field, spec.input};
  throw ConfigError(fmt::format("model '{}' reads the field '{}', and data.input has {}", spec.name,
                                field, known_fields(spec.input_field, spec.inputs)));
}

ModelField target_named(const ModelSpec& spec, const std::string& field) {
  const auto found = std::ranges::find(spec.targets, field, &ModelField::name);
  if (found != spec.targets.end()) return *found;
  if (field == spec.target_field)
    return {field, {}, spec.task == TaskKind::regress ? 0 : spec.classes};
  throw ConfigError(fmt::format("model '{}' learns the field '{}', and data.target has {}",
                                spec.name, field, known_fields(spec.target_field, spec.targets)));
}

ModelBuilder::ModelBuilder(const ModelSpec& spec, std::vector<Objective> objectives, bool losses)
    : spec_(spec), objectives_(std::move(objectives)),
      losses_(losses || spec.mode == ops::Mode::train) {}

Value ModelBuilder::input(const std::string& field) {
  for (const GraphInput& input : built_.inputs)
    if (input.field == field) return input.value;
  return bound(field, spec_.activations);
}

Value ModelBuilder::bound(const std::string& field, DType dtype) {
  const Shape sample = input_named(spec_, field).sample;
  const Value x = graph().input(
      field, {dtype, batch_of(spec_.batch, std::span(sample.begin(), sample.end())), {}});
  built_.inputs.push_back({field, x});
  return x;
}

Value ModelBuilder::of_positions(const std::string& field, const char* what) {
  const ModelField known = input_named(spec_, field);
  require(known.sample.rank() == 1,
          "model '{}' reads {}, and a sample of the field '{}' is {}: data.dataset = \"text\", "
          "\"tokens\" and \"token-pairs\" have sequences of them",
          spec_.name, what, field, known.sample);
  return bound(field, DType::i32);
}

Value ModelBuilder::tokens(const std::string& field, int64_t vocabulary) {
  const Value x = of_positions(field, "tokens");
  built_.inputs.back().classes = vocabulary > 0 ? vocabulary : spec_.classes;
  return x;
}

Value ModelBuilder::documents(const std::string& field) {
  return of_positions(field, "numbers of documents");
}

Value ModelBuilder::rows(const std::string& field) {
  const ModelField known = input_named(spec_, field);
  CHECK(!known.rows.empty() && std::ssize(known.rows) == known.sample.elements(),
        "model '{}': '{}' holds no rows of tables", spec_.name, field);
  return bound(field, DType::i32);
}

Value ModelBuilder::weights(const std::string& field) { return bound(field, DType::f32); }

size_t ModelBuilder::target_index(const std::string& field, const TensorDesc& desc) {
  CHECK(training(), "targets are in the graph of training alone");
  for (size_t i = 0; i < built_.targets.size(); ++i)
    if (built_.targets[i].field == field && graph().type(built_.targets[i].value).desc == desc)
      return i;
  const bool is_input = std::ranges::find(built_.inputs, field, &GraphInput::field) !=
                        built_.inputs.end();  // an autoencoder's target is its input
  built_.targets.push_back({field, graph().input(is_input ? field + ".target" : field, desc)});
  return built_.targets.size() - 1;
}

Value ModelBuilder::target(const std::string& field, const TensorDesc& desc) {
  (void)target_named(spec_, field);
  return built_.targets[target_index(field, desc)].value;
}

const Objective& ModelBuilder::objective_named(const std::string& name) const {
  const auto objective = std::ranges::find(objectives_, name, &Objective::name);
  require(objective != objectives_.end(), "model '{}' has no objective '{}'", spec_.name, name);
  return *objective;
}

ops::TokenLabels ModelBuilder::next_tokens(const std::string& name) {
  const Objective& o = objective_named(name);
  const ModelField field = target_named(spec_, o.target);
  const Shape sample = field.sample.rank() == 1 ? field.sample : spec_.input;
  const TensorDesc desc{
      DType::i32, batch_of(spec_.batch, std::span(sample.begin(), sample.end())), {}};
  Value labels;
  if (training()) {
    const size_t target = target_index(o.target, desc);
    built_.targets[target].classes = spec_.classes;
    labels = built_.targets[target].value;
  } else {
    labels = graph().input(o.target, desc);
    built_.inputs.push_back({o.target, labels, spec_.classes});
  }
  return ops::count_tokens(graph(), name.empty() ? "tokens.count" : name + ".count", labels,
                           spec_.classes);
}

void ModelBuilder::predict_tokens(const std::string& name, Value logits,
                                  const ops::TokenLabels& next) {
  const std::string suffix = name.empty() ? "" : "." + name;
  ModelOutput output{.objective = objective_named(name), .prediction = {}};
  const Objective& o = output.objective;
  CHECK(*o.task == TaskKind::language, "model '{}': tokens are no objective of {}", spec_.name,
        name_of(*o.task));
  const ops::TokenLosses losses = ops::token_loss(
      graph(), "loss" + suffix, logits, next,
      {.label_smoothing = spec_.loss.label_smoothing, .scale = spec_.loss.scale * o.weight});
  output.prediction = losses.surprise;
  if (!training())
    output.prediction = ops::concat(
        graph(), "prediction" + suffix,
        {losses.surprise, ops::token_hits(graph(), "hits" + suffix, logits, next.labels)});
  graph().mark_output(output.prediction);
  if (training()) {
    output.target = target_index(o.target, graph().type(next.labels).desc);
    add_loss(losses.loss);
  }
  built_.outputs.push_back(std::move(output));
}

void ModelBuilder::predict(const std::string& name, Value y) {
  const std::string suffix = name.empty() ? "" : "." + name;
  ModelOutput output{.objective = objective_named(name),
                     .prediction = ops::convert(graph(), "prediction" + suffix, y, DType::f32)};
  const TaskKind task = *output.objective.task;
  y = output.prediction;
  check_prediction(spec_, task, graph().shape(y));
  graph().mark_output(y);
  if (training()) {
    const Objective& o = output.objective;
    (void)target_named(spec_, o.target);
    output.target = target_index(o.target, target_desc(task, graph().shape(y)));
    const Value t = built_.targets[output.target].value;
    if (task != TaskKind::regress) {
      int64_t& classes = built_.targets[output.target].classes;
      classes = classes == 0 ? graph().shape(y)[1] : std::min(classes, graph().shape(y)[1]);
    }
    if (!o.own_loss && task == TaskKind::regress) {
      ops::PointwiseLossAttributes loss = spec_.pointwise_loss;
      loss.kind = *o.loss;
      loss.scale *= o.weight;
      add_loss(ops::pointwise_loss(graph(), "loss" + suffix, y, t, loss));
    } else if (!o.own_loss) {
      ops::SoftmaxCrossEntropyAttributes loss = spec_.loss;
      loss.scale *= o.weight;
      add_loss(ops::softmax_cross_entropy(graph(), "loss" + suffix, y, t, loss));
    }
  }
  built_.outputs.push_back(std::move(output));
}

void ModelBuilder::read_out(const std::string& name, Value y) {
  const auto is_called_so = [&](const auto& known) { return known.name == name; };
  CHECK(!name.empty() && std::ranges::none_of(objectives_, is_called_so) &&
            std::ranges::none_of(built_.readings, is_called_so),
        "model '{}': '{}' is one name of two outputs, or none", spec_.name, name);
  if (training()) return;
  const Value value = ops::convert(graph(), "reading." + name, y, DType::f32);
  graph().mark_output(value);
  built_.readings.push_back({name, value});
}

void ModelBuilder::add_loss(Value loss) {
  CHECK(training(), "losses are in the graph of training alone");
  if (graph().shape(loss).rank() != 0 || graph().type(loss).desc.dtype != DType::f32)
    throw ConfigError(fmt::format("model '{}': a loss is an f32 scalar, '{}' is {}", spec_.name,
                                  graph()[loss].name, graph().shape(loss)));
  built_.losses.push_back(loss);
  graph().mark_output(loss);
}

ModelGraph ModelBuilder::finish() && {
  for (const Objective& objective : objectives_)
    if (std::ranges::none_of(built_.outputs, [&](const ModelOutput& output) {
          return output.objective.name == objective.name;
        }))
      throw ConfigError(
          fmt::format("model '{}' makes no prediction '{}'", spec_.name, objective.name));
  require(spec_.mode != ops::Mode::train || !built_.losses.empty(),
          "model '{}' has no loss: there is nothing to learn", spec_.name);
  return std::move(built_);
}

}  // namespace tutti::models
