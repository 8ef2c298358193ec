#pragma once
// Private to first_bytes.cpp: which kind of text a file is.

#include <string>
#include <string_view>

#include "tutti/data/format/first_bytes.h"

namespace tutti::data {

/// The kind that a text's first characters show; Content::text where nothing more is known.
Content kind_of_text(std::string_view text);

/// How to read a table of text, by its separator and whether it has a line of names.
std::string remedy_of_table(std::string_view text);

}  // namespace tutti::data
