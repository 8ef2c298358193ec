#pragma once
// The model "layers": a network written as a list of tables, [[model.layer]]. A layer reads the
// layer before it, or those that its `input` names; the last one is the prediction unless some
// layers are marked as outputs.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

enum class LayerKeyKind : uint8_t { count, extents, real, flag, word, text, texts };

struct LayerKey {
  std::string name;
  LayerKeyKind kind;
  std::string help;
  double least = 0, greatest = 1 << 24;  ///< limits of a number
  std::vector<std::string> words{};      ///< the allowed words
};

class LayerPlace;

struct LayerType {
  std::string name, help;
  std::vector<std::string> keys;  ///< besides the keys that every layer takes
  Value (*build)(LayerPlace& place);
  int least_inputs = 1, most_inputs = 1;
};

/// Returns all types, in the order of the documentation. Immutable; safe from any thread.
const std::vector<LayerType>& layer_types();
/// Returns null where there is no such type.
const LayerType* find_layer_type(std::string_view name);
/// The keys of all types; find_layer_key returns null where there is no such key.
const std::vector<LayerKey>& layer_keys();
const LayerKey* find_layer_key(std::string_view name);
/// Returns the keys that a layer of the type takes, starting with the keys of every layer.
std::vector<std::string> keys_of(const LayerType& type);

/// Throws ConfigError with the reason ("must be at least 1, is 0"), without name or place.
void check_layer_value(const LayerKey& key, const LayerValue& value);
/// Throws ConfigError naming layer and key where a table has no type, an unknown one, or keys or
/// values that it does not take.
void check_layers(const std::vector<LayerTable>& layers);

/// Returns the objectives of the layers that predict. Throws ConfigError for an empty list.
std::vector<Objective> layers_objectives(const ModelSpec& spec);
/// Throws ConfigError naming the layer and its place if shapes do not fit.
void build_layers(ModelBuilder& model);

/// A layer while it is built: its inputs and its keys, which were checked before.
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
  /// Returns one number for all dimensions, or one for each.
  std::array<int64_t, 3> extents(std::string_view key, std::array<int64_t, 3> otherwise) const;
  Shape shape() const;  ///< value of the key `shape`
  /// Returns the key's number; without the key, a layer that predicts takes it from the target.
  int64_t outputs(std::string_view key) const;
  /// Returns whether only pointwise layers, if any, stand between this one and a prediction.
  bool predicts() const { return predicts_; }
  std::optional<ops::ActivationAttributes> activation() const;
  Init::Kind init(std::string_view key) const;
  /// Returns `y` with the layer's activation as a node of its own, where it has one.
  Value activated(Value y) const;

 private:
  const ModelField& target_;
  bool predicts_;
  const LayerTable& table_;
};

}  // namespace tutti::models
