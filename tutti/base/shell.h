#pragma once
// Writes words and commands so that a POSIX shell reads them back.

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Returns `word` unchanged if a shell reads it so, otherwise in quotes.
std::string shell_word(std::string_view word);

/// Returns argv as one line.
std::string shell_line(const std::vector<std::string>& command);

}  // namespace tutti
