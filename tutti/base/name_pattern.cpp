#include "tutti/base/name_pattern.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/number.h"

namespace tutti {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool fits_pattern(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool fits_any(std::span<const std::string> patterns, const std::string& name) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return fits_pattern(pattern, name); });
}

PatternValue parse_pattern_value(std::string_view key, std::string_view line) {
  const size_t colon = line.rfind(':');
  PatternValue parsed;
  const std::string_view number =
      colon == std::string_view::npos ? "" : trimmed(line.substr(colon + 1));
  if (colon != std::string_view::npos) parsed.pattern = trimmed(line.substr(0, colon));
  const bool read = read_number(number, parsed.value);
  if (parsed.pattern.empty() || !read || !std::isfinite(parsed.value))
    throw ConfigError(fmt::format(
        "{}: '{}' is not a pattern, a colon and a number, as in \"fc*.weight: 0.01\"", key, line));
  return parsed;
}

int first_fit(std::span<const PatternValue> lines, const std::string& name) {
  const auto at = std::ranges::find_if(
      lines, [&](const PatternValue& line) { return fits_pattern(line.pattern, name); });
  return at == lines.end() ? -1 : static_cast<int>(at - lines.begin());
}

void require_fit(std::string_view key, const std::string& pattern,
                 std::span<const std::string> names) {
  if (std::ranges::none_of(names,
                           [&](const std::string& name) { return fits_pattern(pattern, name); }))
    throw ConfigError(fmt::format("{}: nothing is called '{}'; there are {}", key, pattern,
                                  list_of_names(names)));
}

std::string list_of_names(std::span<const std::string> names) {
  constexpr size_t kEnds = 10;
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names.size() > 2 * kEnds && i == kEnds) {
      text += ", ...";
      i = names.size() - kEnds;
    }
    text += (text.empty() ? "" : ", ") + names[i];
  }
  return text;
}

}  // namespace tutti
