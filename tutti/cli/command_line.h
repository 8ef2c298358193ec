#pragma once
// Runs the verb that the words of the command line name.

#include <string>
#include <vector>

namespace tutti::cli {

/// Runs the verb, or prints help or the version. Returns the exit code (base/error.h). Throws
/// ConfigError for words that make no sense, and whatever the verb throws.
int run_command_line(const std::vector<std::string>& words);

}  // namespace tutti::cli
