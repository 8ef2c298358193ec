#pragma once
// Shell patterns over names, as users write them for groups of parameters: "fc.*", "*.weight".

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Matches as fnmatch(3) without flags does: *, ?, [...]; the whole name must fit.
bool fits_pattern(const std::string& pattern, const std::string& name);
bool fits_any(std::span<const std::string> patterns, const std::string& name);

/// A pattern and the value for names that fit: "fc*.weight: 0.01".
struct PatternValue {
  std::string pattern;
  double value = 0;
  bool operator==(const PatternValue&) const = default;
};
/// Parses a line "PATTERN: VALUE". Throws ConfigError naming `key`, the line and what is wrong.
PatternValue parse_pattern_value(std::string_view key, std::string_view line);

/// Returns the index of the first line that fits; -1: none.
int first_fit(std::span<const PatternValue> lines, const std::string& name);

/// Throws ConfigError, naming `key` and the names, if a pattern fits none of `names`.
void require_fit(std::string_view key, const std::string& pattern,
                 std::span<const std::string> names);

/// Returns "a, b, c"; of more than twenty names the first and the last ten.
std::string list_of_names(std::span<const std::string> names);

}  // namespace tutti
