#pragma once
// Pieces of the HTML pages of one study and of several.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/study/describe.h"
#include "tutti/study/report.h"

namespace tutti::study {

std::string escaped(std::string_view text);
/// Returns a path as the target of a link: percent-encoded, so that no part of it is a scheme, a
/// query or a fragment, and beginning with "./" if it is relative.
std::string link_target(std::string_view path);
/// Returns JSON for a script element, in which no "</script>" or "<!--" may appear.
std::string script_safe(const std::string& json);

/// Returns a table with numbers aligned right and sentences left. `last`: HTML to use in the last
/// column instead of the row's own cell.
std::string html_table(const TextTable& table, const std::vector<std::string>& last = {});
std::string definitions(const Facts& facts);
/// Returns a section with the notes that weaken the numbers; empty if there are none.
std::string notes_html(const std::vector<std::string>& notes);
/// `heading` and `body` are HTML.
std::string section(const std::string& heading, const std::string& body, const char* below);

/// Returns a page's frame with every {{name}} replaced.
using PageValues = std::vector<std::pair<std::string_view, std::string>>;
std::string filled(std::string_view frame, const PageValues& values);

}  // namespace tutti::study
