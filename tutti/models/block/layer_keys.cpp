// The keys of [[model.layer]], and the values they may have.

#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/spelling.h"
#include "tutti/models/block/layers.h"

namespace tutti::models {
namespace {

std::vector<std::string> activation_words() {
  std::vector<std::string> all{"none"};
  for (const ops::ActivationKind kind : ops::activation_kinds()) all.emplace_back(name_of(kind));
  return all;
}

std::vector<std::string> inits() {
  const auto all = words(Init::Kind::zeros);
  return {all.begin(), all.end()};
}

std::vector<LayerKey> all_keys() {
  using enum LayerKeyKind;
  const auto one_of = [](std::string name, std::string help, std::vector<std::string> words) {
    return LayerKey{std::move(name), word, std::move(help), 0, 0, std::move(words)};
  };
  return {
      {"type", word, "What the layer does: one of the types above. Needed"},
      {"name", text,
       "Its name, and that of its parameters. Without it: its type and a number, `conv1`"},
      {"input", texts,
       "Names of layers above it, or of fields of `data.input`. Without it: the layer before"},
      {"output", flag,
       "It is a prediction. Where no layer has this key or `target`, the last one is. false "
       "without "
       "it"},
      {"target", text,
       "It predicts this field of `data.target`. Without it, of a layer that predicts: the first"},
      one_of("task",
             "What is learned of that field. Without it: `model.task`, and where that is auto, "
             "what the field holds: numbers (also with `loss`), one class, or a class at each "
             "position",
             {"classify", "segment", "regress"}),
      one_of("loss", "Loss of each number. Without it: `loss.pointwise`",
             {"mse", "mae", "huber", "bce_with_logits"}),
      {"weight", real, "Weight of its loss in the sum of all. 1 without it", 0, 1e30},
      {"channels", count,
       "Channels of the result. Needed, but in a layer that predicts: without it as many as its "
       "target has classes or channels",
       1},
      {"outputs", count,
       "Numbers of the result. Needed, but in a layer that predicts: without it as many as its "
       "target has classes or numbers",
       1},
      {"kernel", extents,
       "Side of the window, or its sides as a list. 1 without it; a pool needs it", 1, 4096},
      {"stride", extents, "Positions from window to window. 1 without it; of a pool: the kernel", 1,
       4096},
      {"pad", extents, "Zeros before and after each dimension. 0 without it", 0, 4096},
      {"pad_high", extents, "Zeros after each dimension. Without it: `pad`", 0, 4096},
      {"dilation", extents, "Positions from one weight of the window to the next. 1 without it", 1,
       4096},
      {"output_pad", extents, "Positions added after each dimension of the result. 0 without it", 0,
       4096},
      {"groups", count, "Groups of channels that do not see each other. 1 without it", 1},
      {"bias", flag, "Whether a number is added to each channel. true without it"},
      one_of("activation",
             "Nonlinearity of the result. none without it; the type `activation` needs it",
             activation_words()),
      {"slope", real, "Of leaky_relu. 0.01 without it", 1e-6, 1},
      one_of("init", "How weights start. uniform_fan_in without it, as in PyTorch", inits()),
      {"init_value", real,
       "The number of constant, the deviation of normal and truncated_normal, the bound of "
       "uniform: these need it, for without it it is 0",
       -1e30, 1e30},
      one_of("bias_init", "How biases start. uniform_fan_in without it, with the weight's fan",
             {"uniform_fan_in", "zeros", "constant"}),
      {"bias_value", real, "The number of a constant bias. 0 without it", -1e30, 1e30},
      {"epsilon", real, "Added to the variance. 1e-5 without it", 0, 1},
      {"momentum", real, "Weight of a batch in the running statistics. 0.1 without it", 0, 1},
      one_of("statistics",
             "What training normalises by: the batch, or the running averages, which then are "
             "constants to the gradient (with momentum = 0: frozen). batch without it",
             {"batch", "running"}),
      one_of("kind", "Maximum or average. max without it", {"max", "average"}),
      {"count_pad", flag, "Whether an average counts the padding. true without it"},
      {"probability", real, "Probability with which an element is left out. 0.5 without it", 0,
       0.999},
      {"floor", real,
       "Of power_spectrum: added to each power before its logarithm. 1e-6 without it", 1e-30, 1e30},
      {"itself", flag,
       "Of interaction: also the product of each input with itself, after those with the inputs "
       "before it. false without it"},
      {"factor", real, "What it is multiplied by. 1 without it", -1e30, 1e30},
      {"factors", extents, "How often an element is repeated, in all dimensions or in each. Needed",
       1, 64},
      {"reduction", count,
       "Of squeeze_excitation: channels for each number of its inner layer. 16 without it", 1},
      {"shape", extents, "Extents of the result, without the batch. Needed"},
  };
}

const char* kind_text(LayerKeyKind kind) {
  switch (kind) {
    case LayerKeyKind::count: return "an integer";
    case LayerKeyKind::extents: return "an integer or a list of integers";
    case LayerKeyKind::real: return "a number";
    case LayerKeyKind::flag: return "true or false";
    case LayerKeyKind::word:
    case LayerKeyKind::text: return "a string";
    case LayerKeyKind::texts: return "a string or a list of strings";
  }
  return "";
}

bool is_of_kind(LayerKeyKind kind, const LayerValue& value) {
  const bool integer = std::holds_alternative<int64_t>(value),
             text = std::holds_alternative<std::string>(value);
  switch (kind) {
    case LayerKeyKind::count: return integer;
    case LayerKeyKind::extents:
      return integer || (std::holds_alternative<std::vector<int64_t>>(value) &&
                         !std::get<std::vector<int64_t>>(value).empty());
    case LayerKeyKind::real: return integer || std::holds_alternative<double>(value);
    case LayerKeyKind::flag: return std::holds_alternative<bool>(value);
    case LayerKeyKind::word: return text;
    case LayerKeyKind::text: return text && !std::get<std::string>(value).empty();
    case LayerKeyKind::texts:
      return text || std::holds_alternative<std::vector<std::string>>(value);
  }
  return false;
}

void require_within(const LayerKey& key, double x) {
  require(x >= key.least && x <= key.greatest, "must be between {} and {}, is {}", key.least,
          key.greatest, x);
}

}  // namespace

const std::vector<LayerKey>& layer_keys() {
  static const std::vector<LayerKey> keys = all_keys();
  return keys;
}

const LayerKey* find_layer_key(std::string_view name) {
  const auto found = std::ranges::find(layer_keys(), name, &LayerKey::name);
  return found == layer_keys().end() ? nullptr : &*found;
}

std::vector<std::string> keys_of(const LayerType& type) {
  std::vector<std::string> keys = {"type",   "name", "input", "output",
                                   "target", "task", "loss",  "weight"};
  keys.insert(keys.end(), type.keys.begin(), type.keys.end());
  return keys;
}

void check_layer_value(const LayerKey& key, const LayerValue& value) {
  require(is_of_kind(key.kind, value), "must be {}", kind_text(key.kind));
  if (key.kind == LayerKeyKind::count || key.kind == LayerKeyKind::extents ||
      key.kind == LayerKeyKind::real) {
    if (const auto* i = std::get_if<int64_t>(&value)) require_within(key, static_cast<double>(*i));
    if (const auto* x = std::get_if<double>(&value)) require_within(key, *x);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
      for (const int64_t i : *list) require_within(key, static_cast<double>(i));
  }
  if (key.words.empty()) return;
  const std::string& given = std::get<std::string>(value);
  if (std::ranges::find(key.words, given) == key.words.end())
    throw ConfigError(must_be_one_of(key.words, given));
}

namespace {

/// Throws for keys without effect, because of another key's value or absence.
void check_company(const LayerTable& layer, const LayerType& type) {
  const auto word = [&](std::string_view key) {
    const LayerValue* value = layer.find(key);
    const auto* text = value ? std::get_if<std::string>(value) : nullptr;
    return text ? *text : std::string();
  };
  if (layer.find("slope") && word("activation") != "leaky_relu")
    throw ConfigError("slope is of activation = \"leaky_relu\"");
  const std::string init = word("init");
  if (layer.find("init_value") && init != "constant" && init != "normal" &&
      init != "truncated_normal" && init != "uniform")
    throw ConfigError("init_value is of init = constant, normal, truncated_normal or uniform");
  if (layer.find("bias_value") && word("bias_init") != "constant")
    throw ConfigError("bias_value is of bias_init = \"constant\"");
  if (type.name == "scale" && !layer.find("factor")) throw ConfigError("scale needs factor");
}

}  // namespace

void check_layers(const std::vector<LayerTable>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto refuse = [&](const std::string& reason) {
      throw ConfigError(fmt::format("layer {}: {}", i + 1, reason));
    };
    const LayerValue* given = layers[i].find("type");
    const auto* name = given ? std::get_if<std::string>(given) : nullptr;
    const LayerType* type = name ? find_layer_type(*name) : nullptr;
    if (!type) refuse(name ? fmt::format("there is no type '{}'", *name) : "has no type");
    const std::vector<std::string> keys = keys_of(*type);
    for (const auto& [key, value] : layers[i].entries) {
      if (std::ranges::find(keys, key) == keys.end())
        refuse(fmt::format("{} has no key '{}'", *name, key));
      try {
        if (key != "type") check_layer_value(*find_layer_key(key), value);
      } catch (const ConfigError& error) {
        refuse(fmt::format("{} {}", key, error.what()));
      }
    }
    try {
      check_company(layers[i], *type);
    } catch (const ConfigError& error) {
      refuse(error.what());
    }
  }
}

}  // namespace tutti::models
