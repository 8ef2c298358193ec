#pragma once
// Completion scripts for shells, from the table of verbs: verbs, flags, the words that a value may
// be, models, data sets and configuration keys.

#include <string>
#include <vector>

#include "tutti/cli/flags/flags.h"

namespace tutti {

/// The script of "bash", "zsh" or "fish".
std::string completion(const std::vector<Verb>& verbs, const std::string& shell);

}  // namespace tutti
