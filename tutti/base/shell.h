#pragma once
// Words and commands as a POSIX shell reads them back.

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// `word` as it is where a shell takes it so, else in quotes.
std::string shell_word(std::string_view word);

/// argv as one line.
std::string shell_line(const std::vector<std::string>& command);

}  // namespace tutti
