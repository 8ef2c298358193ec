#pragma once
// The values of a run's configuration as text, to be kept and compared.

#include <map>
#include <string>

#include "tutti/config/config.h"

namespace tutti {

/// Key -> value as TOML. A checkpoint keeps them, with a name or two that are no keys.
using RunSettings = std::map<std::string, std::string>;

/// The value of each key of the table.
RunSettings run_settings(const RunConfig& config);

/// What all ranks of a job must have alike (AmongRanks), one "key = value" a line: the keys in the
/// order of the table, then the names that are no keys.
std::string shared_lines(const RunSettings& settings);

}  // namespace tutti
