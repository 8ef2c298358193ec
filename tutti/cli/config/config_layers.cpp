#include "tutti/cli/config/config_layers.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/cli/config/config_value.h"
#include "tutti/cli/flags/suggest.h"
#include "tutti/models/block/layers.h"

namespace tutti::cli {
namespace {

models::LayerValue layer_value(const toml::node& node) {
  return std::visit(
      [](auto value) -> models::LayerValue {
        if constexpr (std::is_same_v<decltype(value), std::vector<models::LayerTable>>)
          throw ConfigError("must be a value, is a list of tables");
        else
          return value;
      },
      value_of(node));
}

/// TOML's parser sorts the keys of a table; their places give the order of writing.
std::vector<std::pair<const toml::key*, const toml::node*>> in_order(const toml::table& table) {
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;
  for (const auto& [key, node] : table) entries.emplace_back(&key, &node);
  std::ranges::stable_sort(entries, [](const auto& a, const auto& b) {
    const auto &x = a.first->source().begin, &y = b.first->source().begin;
    return x.line != y.line ? x.line < y.line : x.column < y.column;
  });
  return entries;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const models::LayerType& type : models::layer_types()) names.push_back(type.name);
  return names;
}

/// Reads one table.
class LayerReader {
 public:
  LayerReader(const LayerSource& source, Mistakes& mistakes)
      : source_(source), mistakes_(mistakes) {}

  models::LayerTable read(const toml::table& table) {
    models::LayerTable layer;
    layer.where = place(source_.file, table.source());
    const models::LayerType* type = type_of(table);
    if (!type) return layer;
    const std::vector<std::string> keys = models::keys_of(*type);
    for (const auto& [key, node] : in_order(table)) {
      const std::string name(key->str());
      if (std::ranges::find(keys, name) == keys.end()) {
        add(key->source(), fmt::format("a layer of type \"{}\" has no key '{}'{}", type->name, name,
                                       did_you_mean(name, keys)));
        continue;
      }
      try {
        models::LayerValue value = layer_value(*node);
        models::check_layer_value(*models::find_layer_key(name), value);
        layer.entries.emplace_back(name, std::move(value));
      } catch (const ConfigError& error) {
        add(node->source(), fmt::format("{} {}{}", name, error.what(), nearest_word(name, *node)));
      }
    }
    return layer;
  }

 private:
  const models::LayerType* type_of(const toml::table& table) {
    const toml::node* node = table.get("type");
    const auto name = node ? node->value<std::string>() : std::nullopt;
    if (!name) {
      add(table.source(), "a layer needs type = \"...\": one of those of `tutti config --doc`");
      return nullptr;
    }
    const models::LayerType* type = models::find_layer_type(*name);
    if (!type)
      add(node->source(),
          fmt::format("there is no layer of type \"{}\"{}: there are {}", *name,
                      did_you_mean(*name, type_names()), fmt::join(type_names(), ", ")));
    return type;
  }

  static std::string nearest_word(const std::string& key, const toml::node& node) {
    const auto word = node.value<std::string>();
    const models::LayerKey* known = models::find_layer_key(key);
    return word && known ? did_you_mean(*word, known->words) : "";
  }

  void add(const toml::source_region& at, const std::string& text) {
    mistakes_.add({source_.number, at.begin.line, at.begin.column},
                  fmt::format("{}: {}", place(source_.file, at), text));
  }

  const LayerSource& source_;
  Mistakes& mistakes_;
};

}  // namespace

std::vector<models::LayerTable> read_layers(const toml::node& node, const LayerSource& source,
                                            Mistakes& mistakes) {
  std::vector<models::LayerTable> layers;
  const toml::array* array = node.as_array();
  if (!array || !(array->empty() || array->is_homogeneous<toml::table>())) {
    mistakes.add(
        {source.number, node.source().begin.line, node.source().begin.column},
        fmt::format("{}: model.layer is a list of tables: write [[model.layer]] above each",
                    place(source.file, node.source())));
    return layers;
  }
  for (const toml::node& item : *array)
    layers.push_back(LayerReader(source, mistakes).read(*item.as_table()));
  // A table with a mistake may be incomplete; the mistakes end the reading of the configuration.
  std::erase_if(layers, [](const models::LayerTable& layer) { return !layer.find("type"); });
  return layers;
}

models::LayerTable layer_of(const toml::table& table) {
  models::LayerTable layer;
  for (const auto& [key, node] : in_order(table)) try {
      layer.entries.emplace_back(key->str(), layer_value(*node));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{} {}", key->str(), error.what()));
    }
  return layer;
}

}  // namespace tutti::cli
