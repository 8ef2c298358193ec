#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "tutti/base/visible.h"
#include "tutti/config/config.h"

namespace tutti::config {
namespace {

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return with_unicode_escapes(out) + '"';
}

std::string layer_toml(const models::LayerTable& layer) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : layer.entries)
    parts.push_back(fmt::format("{} = {}", key, toml_of_layer(value)));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::string real(double x) {
  const std::string text = fmt::format("{}", x);  // the shortest that reads back equal
  return std::isfinite(x) && text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string_view to_string(ConfigType type) {
  constexpr std::array<std::string_view, 9> kText = {
      "true or false",      "an integer",        "a number",          "a string",        "a string",
      "a list of integers", "a list of numbers", "a list of strings", "a list of tables"};
  return kText[static_cast<size_t>(type)];
}

std::string to_toml(const ConfigValue& value) {
  const auto list = [](const auto& items, auto&& text) {
    std::vector<std::string> parts;
    for (const auto& item : items) parts.push_back(text(item));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  };
  struct {
    decltype(list)& join;
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(double x) const { return real(x); }
    std::string operator()(const std::string& text) const { return toml_string(text); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return join(v, [](int64_t i) { return std::to_string(i); });
    }
    std::string operator()(const std::vector<double>& v) const { return join(v, real); }
    std::string operator()(const std::vector<std::string>& v) const { return join(v, toml_string); }
    std::string operator()(const std::vector<models::LayerTable>& v) const {
      return join(v, layer_toml);
    }
  } const text{list};
  return std::visit(text, value);
}

std::string toml_of_layer(const models::LayerValue& value) {
  return std::visit([](const auto& v) { return to_toml(ConfigValue(v)); }, value);
}

}  // namespace tutti::config
