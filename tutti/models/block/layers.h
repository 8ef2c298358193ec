#pragma once
// The model "layers": a network written as a list of tables, [[model.layer]]. A layer reads the
// one before it, or those that its `input` names; the last one is the prediction unless some say
// that they are outputs.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/models/block/model_builder.h"

namespace tutti {

enum class LayerKeyKind : uint8_t { count, extents, real, flag, word, text, texts };

struct LayerKey {
  std::string name;
  LayerKeyKind kind;
  std::string help;
  double least = 0, greatest = 1 << 24;  ///< of numbers
  std::vector<std::string> words{};      ///< of a word
};

class LayerPlace;

struct LayerType {
  std::string name, help;
  std::vector<std::string> keys;  ///< besides those of every layer
  int least_inputs = 1, most_inputs = 1;
  Value (*build)(LayerPlace& place);
};

/// All types, in the order of the documentation. Immutable; safe from any thread.
const std::vector<LayerType>& layer_types();
/// Null where there is none.
const LayerType* find_layer_type(std::string_view name);
/// Of every type; find_layer_key: null where there is none.
const std::vector<LayerKey>& layer_keys();
const LayerKey* find_layer_key(std::string_view name);
/// The keys that a layer of the type takes, those of every layer first.
std::vector<std::string> keys_of(const LayerType& type);

/// Throws ConfigError with the reason ("must be at least 1, is 0"), without name or place.
void check_layer_value(const LayerKey& key, const LayerValue& value);
/// Throws ConfigError naming layer and key where a table has no type, an unknown one, or keys or
/// values that it does not take.
void check_layers(const std::vector<LayerTable>& layers);

/// What the layers predict. Throws ConfigError for an empty list.
std::vector<Objective> layers_objectives(const ModelSpec& spec);
/// Throws ConfigError naming the layer and its place if shapes do not fit.
void build_layers(ModelBuilder& model);

/// A layer while it is built: its inputs and its keys, checked before.
class LayerPlace {
 public:
  LayerPlace(ModelBuilder& model, const LayerTable& table, std::string name,
             std::vector<Value> inputs, const ModelField& target, bool predicts)
      : name(std::move(name)), in(std::move(inputs)), graph(model.graph()), spec(model.spec()),
        target_(target), predicts_(predicts), table_(table) {}

  const std::string name;
  const std::vector<Value> in;
  Graph& graph;
  const ModelSpec& spec;

  int spatial() const { return graph.shape(in[0]).rank() - 2; }
  int64_t count(std::string_view key, int64_t otherwise) const;
  float real(std::string_view key, float otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string word(std::string_view key, std::string_view otherwise = "") const;
  bool has(std::string_view key) const { return table_.find(key) != nullptr; }
  /// One number for all dimensions, or one for each.
  std::array<int64_t, 3> extents(std::string_view key, std::array<int64_t, 3> otherwise) const;
  Shape shape() const;  ///< of the key `shape`
  /// The key's number; without it, of a layer that predicts, what the target has.
  int64_t outputs(std::string_view key) const;
  /// Whether nothing but pointwise layers stands between this one and a prediction.
  bool predicts() const { return predicts_; }
  std::optional<ActivationAttributes> activation() const;
  Init::Kind init(std::string_view key) const;
  /// `y` with the layer's activation as a node of its own, where it has one.
  Value activated(Value y) const;

 private:
  const ModelField& target_;
  bool predicts_;
  const LayerTable& table_;
};

}  // namespace tutti
