#pragma once
// From the words of the command line to a verb that has run.

#include <string>
#include <vector>

namespace tutti {

/// Runs the verb, or prints help or the version. The exit code (base/error.h). Throws ConfigError
/// for words that make no sense, and whatever the verb throws.
int run_command_line(const std::vector<std::string>& words);

}  // namespace tutti
