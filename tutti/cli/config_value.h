#pragma once
// TOML nodes as values of the configuration, and their places as people read them.

#include <toml++/toml.h>

#include <string>

#include "tutti/train/config.h"

namespace tutti {

/// Of a value or a list of values or tables. ConfigError with the reason, without place or name.
ConfigValue value_of(const toml::node& node);

/// "run.toml:3:6"
std::string place(const std::string& file, const toml::source_region& at);

}  // namespace tutti
