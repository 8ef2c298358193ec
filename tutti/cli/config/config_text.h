#pragma once
// The configuration as text: resolved values, docs/configuration.md and a JSON schema for editors.

#include <string>

#include "tutti/cli/config/config.h"

namespace tutti::cli {

/// Returns a TOML file that reads back equal; a comment after each value says where it came from.
std::string resolved_toml(const ResolvedConfig& resolved);
/// Returns one object: key -> {value, origin}.
std::string resolved_json(const ResolvedConfig& resolved);

std::string configuration_markdown();  ///< the whole of docs/configuration.md, as it is installed
std::string configuration_schema();    ///< JSON Schema, draft 7

}  // namespace tutti::cli
