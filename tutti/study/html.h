#pragma once
// Pieces of the HTML pages: of one study and of several.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/study/describe.h"
#include "tutti/study/report.h"

namespace tutti::study {

std::string escaped(std::string_view text);
/// A path as the target of a link: percent-encoded, so that no part of it is a scheme, a query or a
/// place in a page, and beginning with "./" where it is relative.
std::string link_target(std::string_view path);
/// JSON inside a script element: no "</script>" or "<!--" may appear in it.
std::string script_safe(const std::string& json);

/// Cells of numbers stand right, sentences left. `last`: HTML that stands in the last column
/// instead of the row's own cell.
std::string html_table(const TextTable& table, const std::vector<std::string>& last = {});
std::string definitions(const Facts& facts);
/// A section of what weakens the numbers; nothing where there is none.
std::string notes_html(const std::vector<std::string>& notes);
/// `heading` and `body` are HTML.
std::string section(const std::string& heading, const std::string& body, const char* below);

/// A page's frame with every {{name}} replaced.
using PageValues = std::vector<std::pair<std::string_view, std::string>>;
std::string filled(std::string_view frame, const PageValues& values);

}  // namespace tutti::study
