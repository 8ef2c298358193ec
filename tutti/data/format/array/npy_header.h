#pragma once
// The Python dictionary at the head of an .npy file.

#include <string_view>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Fills type, byte order, order of dimensions and shape; a type that is not known becomes the
/// array's problem. BadFile that says what is wrong; the caller adds the file.
void parse_npy_header(std::string_view text, StoredArray& array);

}  // namespace tutti::data
