#include "tutti/config/run_settings.h"

#include <fmt/format.h>

namespace tutti::config {

RunSettings run_settings(const RunConfig& config) {
  RunSettings settings;
  for (const ConfigKey& row : config_keys()) settings[row.name] = to_toml(row.get(config));
  return settings;
}

std::string shared_lines(const RunSettings& settings) {
  std::string lines;
  for (const ConfigKey& row : config_keys())
    if (row.among_ranks == AmongRanks::same)
      lines += fmt::format("{} = {}\n", row.name, settings.at(row.name));
  for (const auto& [name, value] : settings)
    if (!find_config_key(name)) lines += fmt::format("{} = {}\n", name, value);
  return lines;
}

}  // namespace tutti::config
