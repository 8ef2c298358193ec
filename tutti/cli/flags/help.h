#pragma once
// Formats help texts for a terminal, from the table of verbs.

#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/flags/flags.h"

namespace tutti::cli {

/// Returns the number of columns of the terminal behind standard output: COLUMNS, else the
/// terminal's own width, else 80; between 40 and 100.
int help_width();

/// Fills words into lines of at most `width` columns (a longer word gets a line of its own). Every
/// line but the first begins with `indent` blanks; the first one is taken to be at column `column`.
/// Line ends in `text` stay.
std::string wrap(std::string_view text, int width, int indent, int column);

/// Lists all verbs by task.
std::string overview(const std::vector<Verb>& verbs, int width);
/// Describes one verb, or one group of verbs. `command` is "tutti data list".
std::string help_text(const Verb& verb, const std::string& command, int width);

/// Returns "tutti train FILE [FLAGS]".
std::string usage_line(const Verb& verb, const std::string& command);
/// Returns the placeholder of the value: "N", "auto|mpi", "[DIR]" where it may be left out; empty
/// for a switch.
std::string placeholder(const Flag& flag);
/// Returns "-c, --check [N]": a flag as people type it.
std::string spelling(const Flag& flag);
/// Returns the help of a flag with its choices, key, default and variable, without a full stop.
std::string description(const Flag& flag);

/// Returns the headings under which a verb's flags stand, in order of first use.
std::vector<std::string> flag_groups(const Verb& verb);

}  // namespace tutti::cli
