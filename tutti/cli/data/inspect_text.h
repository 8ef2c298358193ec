#pragma once
// tutti data inspect: texts and token files.

#include <filesystem>

#include "tutti/cli/data/inspect_images.h"

namespace tutti {

/// Returns whether the path is a text or a token file, or a folder that holds a set of them.
bool is_text_path(const std::filesystem::path& path);
/// Throws BadFile for files that cannot be read.
InspectedData inspect_text(const std::filesystem::path& path);

}  // namespace tutti
