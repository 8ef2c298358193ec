#pragma once
// The human log: one line per event on stderr, `HH:MM:SS text`. Warnings and errors are marked
// after the time, and ranks other than 0 give their number. The date stands on a line of its own
// before the first line and whenever it has changed. Thread-safe. Machine-readable output is the
// run record (trace/), never this.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::log {

enum class Level { error, warn, info, debug, trace };

/// Sets the level and this process's rank. Ranks other than 0 print only warnings and errors,
/// unless the level is debug or more.
void configure(Level level, int rank, int size);
/// How lines look. The default suits a file: no colour, lines of any length.
struct Style {
  bool color = false;  ///< warnings in yellow, errors in red
  int columns = 0;     ///< terminal's width: longer lines are wrapped between words. 0: never
};
void set_style(const Style& style);
Level parse_level(std::string_view name);  ///< throws ConfigError
bool enabled(Level level);
bool is_first_rank();
/// Whether a long line may be broken on a terminal. Not if it holds a command, which people paste
/// into a shell.
enum class Wrap { words, never };
void write(Level level, std::string_view text, Wrap wrap = Wrap::words);
/// Returns the text that write() prints for an event at `time` (seconds since 1970), without the
/// date line, and with a line break at its end.
std::string line_text(Level level, std::string_view text, int64_t time, const Style& style);

template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::error, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::warn, fmt::format(text, std::forward<Args>(args)...));
}
/// Warns once, on rank 0, about a condition that all ranks find.
template <class... Args>
void warn_once(fmt::format_string<Args...> text, Args&&... args) {
  if (is_first_rank()) warn(text, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(text, std::forward<Args>(args)...));
}
/// Logs a line with a command, or with a path as a shell reads it.
template <class... Args>
void command(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::info))
    write(Level::info, fmt::format(text, std::forward<Args>(args)...), Wrap::never);
}
template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace tutti::log
