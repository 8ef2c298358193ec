#pragma once
// Private to first_bytes.cpp: tells which kind of text a file is.

#include <string>
#include <string_view>

#include "tutti/data/file/first_bytes.h"

namespace tutti::data {

/// Says whether this is UTF-8 or another text encoding: no zeros and few other control characters.
bool looks_like_text(std::string_view text);
/// Tells UTF-16 or UTF-32 by a byte-order mark or by letters with zeros between them; else unknown.
Content kind_of_wide_text(std::string_view text);
/// Tells the kind of a text by its first characters; Content::text if they show none.
Content kind_of_text(std::string_view text);

/// Says how to read a table of text, by its separator and whether it has a line of names.
std::string remedy_of_table(std::string_view text);

}  // namespace tutti::data
