#include "tutti/cli/config/config_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/cli/config/config_layers.h"

namespace tutti::cli {
namespace {

config::ConfigValue list_of(const toml::array& array) {
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
    std::vector<models::LayerTable> list;
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

config::ConfigValue value_of(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_array()) return list_of(*value);
  throw ConfigError(node.is_table() ? "must be a value, is a table"
                                    : "must not be a date or a time");
}

config::ConfigValue without_suffix(const config::ConfigKey& row, const config::ConfigValue& value) {
  static const std::map<std::string, std::map<std::string, double, std::less<>>> kUnits = {
      {"bytes",
       {{"B", 1},
        {"kB", 1e3},
        {"MB", 1e6},
        {"GB", 1e9},
        {"KiB", 1 << 10},
        {"MiB", 1 << 20},
        {"GiB", 1 << 30}}},
      {"s", {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}}};
  const auto* text = std::get_if<std::string>(&value);
  if (!text || row.unit.empty()) return value;
  const auto& units = kUnits.at(row.unit);
  double number = 0;
  const char* end = text->data() + text->size();
  const auto [rest, failed] = std::from_chars(text->data(), end, number);
  if (failed != std::errc{}) return value;
  std::string_view suffix(rest, static_cast<size_t>(end - rest));
  suffix.remove_prefix(std::min(suffix.find_first_not_of(' '), suffix.size()));
  const auto unit = units.find(suffix);
  if (unit == units.end()) {
    std::vector<std::string> known;
    for (const auto& [name, factor] : units) known.push_back(name);
    throw ConfigError(
        fmt::format("has the unknown unit '{}', known are {}", suffix, fmt::join(known, ", ")));
  }
  number *= unit->second;
  if (row.type != config::ConfigType::integer) return number;
  if (!(std::abs(number) < 0x1p63))  // also false for inf and nan
    throw ConfigError(fmt::format("is out of range: {}", *text));
  return static_cast<int64_t>(number);
}

std::string place(const std::string& file, const toml::source_region& at) {
  return fmt::format("{}:{}:{}", file, at.begin.line, at.begin.column);
}

namespace {

/// Only a comment allows any text to follow a value.
bool ends_in_comment(const std::string& text) {
  try {
    (void)toml::parse("value = " + text + "=");
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
}

/// Reads `text` as one TOML value; nothing if it is none. A comment is refused: in a flag, text
/// after a '#' is meant as part of the value.
std::optional<config::ConfigValue> parse_value(const std::string& text) {
  try {
    const toml::table parsed = toml::parse("value = " + text);
    if (text.find('#') != text.npos && ends_in_comment(text)) return std::nullopt;
    if (parsed.size() != 1) return std::nullopt;  // the text held a line break and a second key
    return value_of(*parsed.get("value"));
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

}  // namespace

config::ConfigValue parse_setting(const config::ConfigKey& row, const std::string& text) {
  const bool is_text =
      row.type == config::ConfigType::text || row.type == config::ConfigType::choice;
  if (is_text && (text.empty() || (text[0] != '"' && text[0] != '\''))) return text;
  if (row.type >= config::ConfigType::integers &&
      (text.empty() || text[0] != '[' ||
       (row.type == config::ConfigType::texts && !parse_value(text)))) {
    std::string inner = text;
    if (!inner.empty() && inner.front() == '[' && inner.back() == ']')
      inner = inner.substr(1, inner.size() - 2);
    if (row.type != config::ConfigType::texts) return parse_value("[" + inner + "]").value_or(text);
    std::vector<std::string> parts;
    std::stringstream stream(inner);
    for (std::string part; std::getline(stream, part, ',');) {
      const size_t first = part.find_first_not_of(' ');
      if (first != std::string::npos)
        parts.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
    }
    return parts;
  }
  const std::optional<config::ConfigValue> value = parse_value(text);
  const size_t digits = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  if (!value && row.type == config::ConfigType::integer && text.size() > digits &&
      text.find_first_not_of("0123456789", digits) == std::string::npos)
    throw ConfigError(fmt::format("is out of range: {} has more than 64 bits", text));
  return value.value_or(text);
}

}  // namespace tutti::cli
