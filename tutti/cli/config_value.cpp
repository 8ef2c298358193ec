#include "tutti/cli/config_value.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/cli/config_layers.h"

namespace tutti {
namespace {

ConfigValue list_of(const toml::array& array) {
  if (array.empty() || array.is_homogeneous<int64_t>()) {
    std::vector<int64_t> list;
    for (const toml::node& item : array) list.push_back(*item.value<int64_t>());
    return list;
  }
  if (array.is_homogeneous<std::string>()) {
    std::vector<std::string> list;
    for (const toml::node& item : array) list.push_back(*item.value<std::string>());
    return list;
  }
  if (array.is_homogeneous<toml::table>()) {
    std::vector<LayerTable> list;
    for (const toml::node& item : array) list.push_back(layer_of(*item.as_table()));
    return list;
  }
  std::vector<double> list;
  for (const toml::node& item : array) {
    if (!item.is_number()) throw ConfigError("must be a list of one kind: numbers or strings");
    list.push_back(*item.value<double>());
  }
  return list;
}

}  // namespace

ConfigValue value_of(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_array()) return list_of(*value);
  throw ConfigError(node.is_table() ? "must be a value, is a table"
                                    : "must not be a date or a time");
}

std::string place(const std::string& file, const toml::source_region& at) {
  return fmt::format("{}:{}:{}", file, at.begin.line, at.begin.column);
}

}  // namespace tutti
