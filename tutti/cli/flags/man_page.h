#pragma once
// The manual page tutti(1), from the table of verbs.

#include <string>
#include <vector>

#include "tutti/cli/flags/flags.h"

namespace tutti::cli {

/// Returns the page for man(1).
std::string man_page(const std::vector<Verb>& verbs);

}  // namespace tutti::cli
