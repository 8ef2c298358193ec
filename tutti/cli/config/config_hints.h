#pragma once
// Mistakes of a configuration, collected with their places, and the likely cause of an unknown key
// or a file that TOML's parser refuses.

#include <compare>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti::cli {

/// Where something is set: the source in the order of reading (files, the environment, flags), and
/// the line and column in a file.
struct SettingPlace {
  size_t source = 0, line = 0, column = 0;
  auto operator<=>(const SettingPlace&) const = default;
};

/// Collects mistakes, so that all of them are reported at once.
class Mistakes {
 public:
  void add(SettingPlace at, std::string text) { found_.emplace_back(at, std::move(text)); }
  bool none() const { return found_.empty(); }
  /// Throws ConfigError with the one mistake, or with all of them in the order of their places, one
  /// a line.
  void throw_if_any() const;

 private:
  std::vector<std::pair<SettingPlace, std::string>> found_;
};

/// Returns "unknown key 'optimiser.lr', did you mean 'optimizer.lr'?"; for a key of earlier
/// versions, its replacement.
std::string unknown_key(std::string_view name);

/// Returns advice for a file that TOML's parser refuses: another format, a string without quotes,
/// True instead of true. `line` counts from 1. "" where nothing fits.
std::string syntax_hint(std::string_view text, size_t line);

}  // namespace tutti::cli
