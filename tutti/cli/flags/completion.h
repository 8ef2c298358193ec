#pragma once
// Completion scripts for shells, made from the table of verbs: verbs, flags, the possible words of
// a value, models, data sets and configuration keys.

#include <string>
#include <vector>

#include "tutti/cli/flags/flags.h"

namespace tutti::cli {

/// Returns the script of "bash", "zsh" or "fish".
std::string completion(const std::vector<Verb>& verbs, const std::string& shell);

}  // namespace tutti::cli
