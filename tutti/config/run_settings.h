#pragma once
// The values of a run's configuration as text, to be stored and compared.

#include <map>
#include <string>

#include "tutti/config/config.h"

namespace tutti::config {

/// Key -> value as TOML. A checkpoint stores these, plus a few names that are not keys.
using RunSettings = std::map<std::string, std::string>;

/// Returns the value of every key in the table.
RunSettings run_settings(const RunConfig& config);

/// Returns all settings that must be identical on all ranks of a job (AmongRanks), as one "key =
/// value" per line: first the keys in the order of the table, then the names that are not keys.
std::string shared_lines(const RunSettings& settings);

}  // namespace tutti::config
