#include "tutti/base/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <mutex>

#include "tutti/base/error.h"
#include "tutti/base/visible.h"

namespace tutti::log {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"error", "warn", "info", "debug", "trace"};
std::atomic<Level> current_level{Level::info};
std::atomic<int> current_rank{0};
std::atomic<int> current_size{1};

std::mutex writing;  // guards the variables below
Style current_style;
std::string last_date;

constexpr const char* kReset = "\x1b[0m";

std::string_view label(Level level) {
  switch (level) {
    case Level::error: return "error: ";
    case Level::warn: return "warning: ";
    case Level::info: return "";
    case Level::debug: return "debug: ";
    case Level::trace: break;
  }
  return "trace: ";
}

const char* color_of(Level level) {
  if (level == Level::error) return "\x1b[1;31m";
  return level == Level::warn ? "\x1b[1;33m" : "";
}

/// Breaks `text` between words into lines of at most `columns` characters; all but the first are
/// indented. A word longer than a line stays whole, because paths are copied from the screen.
std::string wrapped(std::string_view text, size_t columns, size_t indent) {
  std::string out;
  size_t room = columns;
  while (text.size() > room) {
    size_t at = text.rfind(' ', room);
    if (at == std::string_view::npos || at == 0) at = text.find(' ');
    if (at == std::string_view::npos) break;
    out += fmt::format("{}\n{}", text.substr(0, at), std::string(indent, ' '));
    text.remove_prefix(at + 1);
    room = columns > indent ? columns - indent : columns;
  }
  return out += text;
}

std::string time_text(int64_t time, const char* format) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

}  // namespace

void configure(Level level, int rank, int size) {
  current_level = level;
  current_rank = rank;
  current_size = size;
}

void set_style(const Style& style) {
  const std::lock_guard lock(writing);
  current_style = style;
}

Level parse_level(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Level>(i);
  throw ConfigError(
      fmt::format("log level '{}' is not one of error, warn, info, debug, trace", name));
}

bool enabled(Level level) {
  if (level > current_level) return false;
  return current_rank == 0 || level <= Level::warn || current_level >= Level::debug;
}

bool is_first_rank() { return current_rank == 0; }

std::string line_text(Level level, std::string_view text, int64_t time, const Style& style) {
  constexpr size_t kIndent = 9;  // as wide as the time
  std::string line = time_text(time, "%H:%M:%S ");
  std::string event = fmt::format("{}{}", label(level), visible(text));
  if (current_size > 1 && (current_rank > 0 || current_level >= Level::debug))
    event = fmt::format("rank {}/{}: {}", current_rank.load(), current_size.load(), event);
  if (style.columns > 0)
    event = wrapped(event, static_cast<size_t>(std::max(style.columns - 9, 20)), kIndent);
  const char* color = style.color ? color_of(level) : "";
  return line + color + event + (*color ? kReset : "") + "\n";
}

void write(Level level, std::string_view text, Wrap wrap) {
  if (!enabled(level)) return;
  const int64_t now = std::time(nullptr);
  const std::lock_guard lock(writing);
  Style style = current_style;
  if (wrap == Wrap::never) style.columns = 0;
  std::string lines = line_text(level, text, now, style);
  // A program that only warns is a tool that ends soon: it needs no date.
  if (std::string date = time_text(now, "%Y-%m-%d"); date != last_date && enabled(Level::info)) {
    if (current_rank == 0) lines.insert(0, date + "\n");
    last_date = std::move(date);
  }
  std::fwrite(lines.data(), 1, lines.size(), plain_errors());
}

}  // namespace tutti::log
