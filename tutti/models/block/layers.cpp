// Makes a graph from the tables of [[model.layer]]: names, inputs of each layer, predictions.

#include "tutti/models/block/layers.h"

#include <algorithm>
#include <map>

namespace tutti::models {
namespace {

std::string text_or(const LayerTable& layer, std::string_view key, std::string otherwise = "") {
  const LayerValue* value = layer.find(key);
  return value ? std::get<std::string>(*value) : otherwise;
}

std::vector<std::string> inputs_of(const LayerTable& layer) {
  const LayerValue* value = layer.find("input");
  if (!value) return {};
  if (const auto* one = std::get_if<std::string>(value)) return {*one};
  return std::get<std::vector<std::string>>(*value);
}

/// Returns the names that are given, else type and number.
std::vector<std::string> names_of(const std::vector<LayerTable>& layers) {
  std::vector<std::string> names;
  std::map<std::string, int> counts;
  for (const LayerTable& layer : layers) {
    const std::string type = text_or(layer, "type");
    const int number = ++counts[type];
    names.push_back(text_or(layer, "name", fmt::format("{}{}", type, number)));
  }
  return names;
}

bool says_output(const LayerTable& layer) {
  const LayerValue* output = layer.find("output");
  return (output && std::get<bool>(*output)) || layer.find("target");
}

/// Returns the indices of the layers that predict.
std::vector<size_t> outputs_of(const std::vector<LayerTable>& layers) {
  std::vector<size_t> outputs;
  for (size_t i = 0; i < layers.size(); ++i)
    if (says_output(layers[i])) outputs.push_back(i);
  if (outputs.empty()) outputs.push_back(layers.size() - 1);
  return outputs;
}

std::string placed(const LayerTable& layer, const std::string& message) {
  return layer.where.empty() ? message : fmt::format("{}: {}", layer.where, message);
}

/// Marks layers whose result is a prediction, or becomes one by pointwise layers alone: their
/// results are f32 whatever the type of the activations.
std::vector<bool> before_prediction(const std::vector<LayerTable>& layers,
                                    const std::vector<size_t>& outputs) {
  std::vector<bool> predicts(layers.size());
  for (size_t output : outputs)
    for (size_t i = output;; --i) {
      predicts[i] = true;
      const std::string type = text_or(layers[i], "type");
      const bool pointwise = type == "activation" || type == "scale" || type == "dropout";
      if (!pointwise || layers[i].find("input") || i == 0) break;
    }
  return predicts;
}

/// The layers and inputs that later ones may read, by name.
class Readable {
 public:
  explicit Readable(ModelBuilder& model) : model_(model) {}

  void add(const std::string& name, Value value) {
    require(values_.emplace(name, value).second && !is_field(name),
            "layer '{}': there is a layer or a field of that name: give it another name", name);
  }
  Value named(const std::string& layer, const std::string& name) {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    if (is_field(name)) return model_.input(name);
    std::string known;
    for (const auto& [word, value] : values_) known += (known.empty() ? "" : ", ") + word;
    throw ConfigError(
        fmt::format("layer '{}': input names '{}', and above it there are the layers {} and the "
                    "field {}",
                    layer, name, known.empty() ? "(none)" : known, model_.spec().input_field));
  }

 private:
  bool is_field(const std::string& name) const {
    const ModelSpec& spec = model_.spec();
    return name == spec.input_field ||
           std::ranges::find(spec.inputs, name, &ModelField::name) != spec.inputs.end();
  }

  ModelBuilder& model_;
  std::map<std::string, Value> values_;
};

void require_inputs_of(const LayerType& type, const std::string& name, size_t given) {
  const auto least = static_cast<size_t>(type.least_inputs),
             most = static_cast<size_t>(type.most_inputs);
  require(given >= least && given <= most,
          "layer '{}': {} reads {} layer(s), not {}: name them with input", name, type.name,
          least == most   ? std::to_string(least)
          : given < least ? fmt::format("at least {}", least)
                          : fmt::format("at most {}", most),
          given);
}

/// Returns the task of a layer. Where neither it nor model.task gives one, a pointwise loss means
/// regression; else the field's contents decide, once they are known.
std::optional<TaskKind> task_of(const Objective& objective, const ModelSpec& spec) {
  if (objective.task || spec.task) return objective.task ? objective.task : spec.task;
  if (objective.loss) return TaskKind::regress;
  const std::string& field = objective.target.empty() ? spec.target_field : objective.target;
  const auto target = std::ranges::find(spec.targets, field, &ModelField::name);
  if (target == spec.targets.end()) return std::nullopt;
  if (target->classes == 0) return TaskKind::regress;
  return target->sample.rank() == 0 ? TaskKind::classify : TaskKind::segment;
}

/// Throws where a layer's result is not used, or where a layer that is no prediction has keys of
/// one: most likely `output = true` was forgotten.
void require_use(const std::vector<LayerTable>& layers, const std::vector<size_t>& outputs,
                 const std::vector<std::string>& names) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (std::ranges::find(outputs, i) != outputs.end()) continue;
    const auto refuse = [&](const std::string& why) {
      throw ConfigError(placed(layers[i], fmt::format("layer '{}': {}", names[i], why)));
    };
    for (const char* key : {"task", "loss", "weight"})
      if (layers[i].find(key))
        refuse(fmt::format(
            "{} is of a prediction, and this layer is none: give it output = true or target", key));
    const bool next_reads = i + 1 < layers.size() && !layers[i + 1].find("input");
    const bool named = std::ranges::any_of(layers, [&](const LayerTable& other) {
      const std::vector<std::string> inputs = inputs_of(other);
      return std::ranges::find(inputs, names[i]) != inputs.end();
    });
    if (!next_reads && !named)
      refuse("no layer reads it, and it is no prediction: give it output = true, or leave it out");
  }
}

void require_fitting_loss(const Objective& objective, const LayerTable& layer,
                          const std::string& name) {
  if (objective.loss && objective.task && *objective.task != TaskKind::regress)
    throw ConfigError(placed(
        layer, fmt::format("layer '{}': loss is of numbers, and its task is to {}: leave loss out",
                           name, name_of(*objective.task))));
}

}  // namespace

std::vector<Objective> layers_objectives(const ModelSpec& spec) {
  if (spec.layers.empty())
    throw ConfigError(
        "model 'layers' has no layers: list them in a configuration as "
        "[[model.layer]]");
  check_layers(spec.layers);
  const std::vector<size_t> outputs = outputs_of(spec.layers);
  const std::vector<std::string> names = names_of(spec.layers);
  require_use(spec.layers, outputs, names);
  std::vector<Objective> objectives;
  for (const size_t i : outputs) {
    const LayerTable& layer = spec.layers[i];
    Objective objective{.name = outputs.size() > 1 ? names[i] : "",
                        .target = text_or(layer, "target")};
    const auto& tasks = find_layer_key("task")->words;
    const auto& losses = find_layer_key("loss")->words;
    if (const std::string task = text_or(layer, "task"); !task.empty())
      objective.task = static_cast<TaskKind>(std::ranges::find(tasks, task) - tasks.begin());
    if (const std::string loss = text_or(layer, "loss"); !loss.empty())
      objective.loss =
          static_cast<ops::PointwiseLossKind>(std::ranges::find(losses, loss) - losses.begin());
    objective.task = task_of(objective, spec);
    require_fitting_loss(objective, layer, names[i]);
    if (const LayerValue* weight = layer.find("weight"))
      objective.weight = std::holds_alternative<int64_t>(*weight)
                             ? static_cast<float>(std::get<int64_t>(*weight))
                             : static_cast<float>(std::get<double>(*weight));
    objectives.push_back(std::move(objective));
  }
  return objectives;
}

void build_layers(ModelBuilder& model) {
  const std::vector<LayerTable>& layers = model.spec().layers;
  const std::vector<std::string> names = names_of(layers);
  const std::vector<size_t> outputs = outputs_of(layers);
  const std::vector<bool> predicts = before_prediction(layers, outputs);
  Readable readable(model);
  Value before = model.input();
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerType& type = *find_layer_type(text_or(layers[i], "type"));
    try {
      std::vector<Value> in;
      for (const std::string& name : inputs_of(layers[i]))
        in.push_back(readable.named(names[i], name));
      if (in.empty()) in.push_back(before);
      require_inputs_of(type, names[i], in.size());
      // Layers without a size of their own take it from their own target, or from the next layer's.
      const auto output = std::ranges::find_if(outputs, [&](size_t o) { return o >= i; });
      const size_t o = static_cast<size_t>(output - outputs.begin());
      const ModelField target =
          target_named(model.spec(), model.objectives()[std::min(o, outputs.size() - 1)].target);
      LayerPlace place(model, layers[i], names[i], std::move(in), target, predicts[i]);
      before = type.build(place);
      readable.add(names[i], before);
      if (std::ranges::find(outputs, i) != outputs.end())
        model.predict(outputs.size() > 1 ? names[i] : "", before);
    } catch (const ConfigError& error) {
      throw ConfigError(placed(layers[i], error.what()));
    }
  }
}

int64_t LayerPlace::count(std::string_view key, int64_t otherwise) const {
  const LayerValue* value = table_.find(key);
  return value ? std::get<int64_t>(*value) : otherwise;
}

float LayerPlace::real(std::string_view key, float otherwise) const {
  const LayerValue* value = table_.find(key);
  if (!value) return otherwise;
  const auto* integer = std::get_if<int64_t>(value);
  return integer ? static_cast<float>(*integer) : static_cast<float>(std::get<double>(*value));
}

bool LayerPlace::flag(std::string_view key, bool otherwise) const {
  const LayerValue* value = table_.find(key);
  return value ? std::get<bool>(*value) : otherwise;
}

std::string LayerPlace::word(std::string_view key, std::string_view otherwise) const {
  return text_or(table_, key, std::string(otherwise));
}

std::array<int64_t, 3> LayerPlace::extents(std::string_view key,
                                           std::array<int64_t, 3> otherwise) const {
  const LayerValue* value = table_.find(key);
  if (!value) return otherwise;
  if (const auto* one = std::get_if<int64_t>(value)) return ops::in_all(*one);
  const auto& list = std::get<std::vector<int64_t>>(*value);
  if (std::ssize(list) != spatial() || list.size() > 3)
    throw ConfigError(
        fmt::format("layer '{}': {} has {} numbers, and its input {} has {} spatial "
                    "dimensions",
                    name, key, list.size(), graph.shape(in[0]), std::max(spatial(), 0)));
  std::array<int64_t, 3> result = ops::in_all(1);
  std::ranges::copy(list, result.begin());
  return result;
}

Shape LayerPlace::shape() const {
  const LayerValue* value = table_.find("shape");
  require(value != nullptr, "layer '{}' needs shape", name);
  if (const auto* one = std::get_if<int64_t>(value)) return Shape{*one};
  const auto& list = std::get<std::vector<int64_t>>(*value);
  require(list.size() < Shape::kMaxRank, "layer '{}': a sample has at most {} dimensions", name,
          Shape::kMaxRank - 1);
  return Shape(std::span<const int64_t>(list));
}

int64_t LayerPlace::outputs(std::string_view key) const {
  if (const LayerValue* value = table_.find(key)) return std::get<int64_t>(*value);
  require(predicts_,
          "layer '{}' needs {}: a layer that predicts nothing has it from "
          "nowhere else",
          name, key);
  if (target_.classes > 0) return target_.classes;
  if (target_.sample.rank() == 0) return target_.name == spec.target_field ? spec.classes : 1;
  return key == "channels" ? target_.sample[0] : target_.sample.elements();
}

std::optional<ops::ActivationAttributes> LayerPlace::activation() const {
  const std::string given = word("activation", "none");
  if (given == "none") return std::nullopt;
  const auto& words = find_layer_key("activation")->words;
  const auto at = std::ranges::find(words, given) - words.begin() - 1;  // "none" is the first word
  return ops::ActivationAttributes{static_cast<ops::ActivationKind>(at), real("slope", 0.01f)};
}

Init::Kind LayerPlace::init(std::string_view key) const {
  const auto& words = find_layer_key("init")->words;
  return static_cast<Init::Kind>(std::ranges::find(words, word(key, "uniform_fan_in")) -
                                 words.begin());
}

Value LayerPlace::activated(Value y) const {
  const auto a = activation();
  if (!a) return y;
  return tutti::ops::activation(graph, fmt::format("{}.{}", name, name_of(a->kind)), y, a->kind,
                                a->slope);
}

}  // namespace tutti::models
