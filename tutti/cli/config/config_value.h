#pragma once
// Converts TOML nodes to values of the configuration, and their places to text for people.

#include <toml++/toml.h>

#include <string>

#include "tutti/config/config.h"

namespace tutti::cli {

/// Converts a value or a list of values or tables. Throws ConfigError with the reason, without
/// place or name.
config::ConfigValue value_of(const toml::node& node);

/// Converts 4 MiB, 250 ms, 1.5 h to bytes or seconds. Leaves anything else as it is, for set() to
/// refuse.
config::ConfigValue without_suffix(const config::ConfigKey& row, const config::ConfigValue& value);

/// Reads the text of a flag or a variable: as in a file, but strings need no quotes and lists no
/// brackets. Throws ConfigError for a whole number of more than 64 bits.
config::ConfigValue parse_setting(const config::ConfigKey& row, const std::string& text);

/// Returns "run.toml:3:6".
std::string place(const std::string& file, const toml::source_region& at);

}  // namespace tutti::cli
