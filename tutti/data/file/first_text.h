#pragma once
// Private to first_bytes.cpp: which kind of text a file is.

#include <string>
#include <string_view>

#include "tutti/data/file/first_bytes.h"

namespace tutti::data {

/// UTF-8 or another code for text: no zeros and few other control characters.
bool looks_like_text(std::string_view text);
/// UTF-16 or UTF-32, by a byte-order mark or by letters with zeros between them; else unknown.
Content kind_of_wide_text(std::string_view text);
/// The kind that a text's first characters show; Content::text where nothing more is known.
Content kind_of_text(std::string_view text);

/// How to read a table of text, by its separator and whether it has a line of names.
std::string remedy_of_table(std::string_view text);

}  // namespace tutti::data
