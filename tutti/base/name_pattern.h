#pragma once
// Shell patterns over names, as people write them for groups of parameters: "fc.*", "*.weight".

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// As fnmatch(3) without flags: *, ?, [...]; the whole name must fit.
bool fits_pattern(const std::string& pattern, const std::string& name);
bool fits_any(std::span<const std::string> patterns, const std::string& name);

/// A pattern and what it gives to the names that fit: "fc*.weight: 0.01".
struct PatternValue {
  std::string pattern;
  double value = 0;
  bool operator==(const PatternValue&) const = default;
};
/// Of a line "PATTERN: VALUE". Throws ConfigError naming `key`, the line and what is wrong.
PatternValue parse_pattern_value(std::string_view key, std::string_view line);

/// Index of the first one that fits; -1: none.
int first_fit(std::span<const PatternValue> lines, const std::string& name);

/// Throws ConfigError naming `key` and the names there are, for a pattern that fits none of
/// `names`.
void require_fit(std::string_view key, const std::string& pattern,
                 std::span<const std::string> names);

/// "a, b, c", and of more than twenty the first and the last ten.
std::string list_of_names(std::span<const std::string> names);

}  // namespace tutti
