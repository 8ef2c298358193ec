#include "tutti/cli/config/config_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "tutti/base/error.h"
#include "tutti/cli/flags/suggest.h"
#include "tutti/config/config.h"

namespace tutti::cli {
namespace {

/// A key of earlier versions, the key that replaces it, and how values map.
struct FormerKey {
  std::string_view name, now, values;
};
constexpr FormerKey kFormerKeys[] = {
    {"plan.coarse_bf16", "plan.bf16_error", "where 1 stands for false, and 3 for true"},
    {"data.pad", "data.transforms", "where \"image: crop pad 4, divide 255, normalise\" pads by 4"},
    {"data.crop", "data.transforms", "where \"image: crop pad 4, divide 255, normalise\" crops"},
    {"data.flip", "data.transforms", "where \"image: flip x, divide 255, normalise\" flips"},
    {"data.mean", "data.transforms",
     "where \"image: divide 255, normalise mean 0.5 std 0.25\" says the mean"},
    {"data.std", "data.transforms",
     "where \"image: divide 255, normalise mean 0.5 std 0.25\" says the deviation"}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string_view line_of(std::string_view text, size_t line) {
  for (; line > 1; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return trimmed(text.substr(0, text.find('\n')));
}

bool word_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// "key: value" or "- item".
bool looks_like_yaml(std::string_view line) {
  if (line.starts_with("- ") || line == "---") return true;
  size_t end = 0;
  while (end < line.size() && (word_letter(line[end]) || line[end] == '-')) ++end;
  return end > 0 && end < line.size() && line[end] == ':';
}

}  // namespace

void Mistakes::throw_if_any() const {
  if (found_.empty()) return;
  if (found_.size() == 1) throw ConfigError(found_.front().second);
  auto sorted = found_;
  std::ranges::stable_sort(sorted, {}, [](const auto& mistake) { return mistake.first; });
  std::string all = fmt::format("the configuration has {} mistakes:", sorted.size());
  for (const auto& [at, text] : sorted) all += "\n  " + text;
  throw ConfigError(all);
}

std::string unknown_key(std::string_view name) {
  const auto former = std::ranges::find(kFormerKeys, name, &FormerKey::name);
  if (former != std::end(kFormerKeys))
    return fmt::format("unknown key '{}': it is '{}' now, {}", name, former->now, former->values);
  if (const std::string gpu = about_gpus(name); !gpu.empty())
    return fmt::format("unknown key '{}': {}", name, gpu);
  std::vector<std::string> names = {"include"};
  for (const config::ConfigKey& row : config::config_keys()) names.push_back(row.name);
  std::erase(names, name);  // "include" is a key of files only
  return fmt::format("unknown key '{}'{}", name, did_you_mean(name, names));
}

std::string syntax_hint(std::string_view text, size_t line) {
  const std::string_view start = trimmed(text), bad = line_of(text, line);
  constexpr std::string_view kToml =
      "configurations are TOML: `[section]`, and below it `key = value`";
  if (start.starts_with("{")) return fmt::format("; this looks like JSON; {}", kToml);
  if (looks_like_yaml(bad)) return fmt::format("; this looks like YAML; {}", kToml);
  const size_t equals = bad.find('=');
  if (equals == std::string_view::npos) return "";
  const std::string_view key = trimmed(bad.substr(0, equals)),
                         value = trimmed(bad.substr(equals + 1, bad.find('#') - equals - 1));
  for (const std::string_view word : {"True", "TRUE", "False", "FALSE"})
    if (value == word)
      return fmt::format("; truth values are written small: {} = {}", key,
                         word[0] == 'T' ? "true" : "false");
  if (!value.empty() && (std::isalpha(static_cast<unsigned char>(value[0])) || value[0] == '/' ||
                         value[0] == '~' || value[0] == '.' || value[0] == '$'))
    return fmt::format("; text needs quotes: {} = \"{}\"", key, value);
  return "";
}

}  // namespace tutti::cli
