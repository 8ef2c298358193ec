#pragma once
// What configuration messages add to what a parser says, and paths as people write them.

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Collects what is wrong, so that all of it is reported at once.
class Mistakes {
 public:
  void add(std::string text) { texts_.push_back(std::move(text)); }
  bool none() const { return texts_.empty(); }
  /// ConfigError with the one mistake, or with all of them, one a line.
  void throw_if_any() const;

 private:
  std::vector<std::string> texts_;
};

/// Advice for a file that TOML's parser refuses: another format, a string without quotes, True
/// instead of true. `line` counts from 1. "" where nothing fits.
std::string syntax_hint(std::string_view text, size_t line);

/// `path` with a leading ~ and with $NAME and ${NAME} replaced as a shell does. ConfigError naming
/// a variable that is not set.
std::string expand_path(const std::string& path);

}  // namespace tutti
