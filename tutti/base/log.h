#pragma once
// The human log: one line per event on stderr, `HH:MM:SS level rank/size: text`. Thread-safe.
// Machine-readable output is the run record (trace/), never this.

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tutti::log {

enum class Level { error, warn, info, debug, trace };

/// Sets the level and who speaks. Ranks other than 0 print only warnings and errors, unless the
/// level is debug or more.
void configure(Level level, int rank, int size);
Level parse_level(std::string_view name);  ///< throws ConfigError
bool enabled(Level level);
void write(Level level, std::string_view text);

template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::error, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warn, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace tutti::log
