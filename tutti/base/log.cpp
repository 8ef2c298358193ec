#include "tutti/base/log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>

#include "tutti/base/error.h"

namespace tutti::log {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"error", "warn", "info", "debug", "trace"};
std::atomic<Level> current_level{Level::info};
std::atomic<int> current_rank{0};
std::atomic<int> current_size{1};

}  // namespace

void configure(Level level, int rank, int size) {
  current_level = level;
  current_rank = rank;
  current_size = size;
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

void write(Level level, std::string_view text) {
  if (!enabled(level)) return;
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  const std::string who =
      current_size > 1 ? fmt::format(" rank {}/{}:", current_rank.load(), current_size.load()) : "";
  const std::string line =
      fmt::format("{:02}:{:02}:{:02} {:<5}{} {}\n", parts.tm_hour, parts.tm_min, parts.tm_sec,
                  kNames[static_cast<size_t>(level)], who, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace tutti::log
