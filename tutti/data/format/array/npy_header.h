#pragma once
// Parses the Python dictionary at the head of an .npy file.

#include <string_view>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Fills type, byte order, order of dimensions and shape; an unknown type becomes the array's
/// problem. BadFile with the fault; the caller adds the file.
void parse_npy_header(std::string_view text, StoredArray& array);

}  // namespace tutti::data
