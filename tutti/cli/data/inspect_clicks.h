#pragma once
// Describes a click log for `tutti data inspect`.

#include <filesystem>

#include "tutti/cli/data/inspect_images.h"

namespace tutti {

/// Whether `path` is a log that data.dataset = "clicks" reads (click_line.h), or a folder whose
/// "train" begins with one.
bool is_click_log(const std::filesystem::path& path);
/// Looks at the first 100,000 lines, of a folder those of its first log. Throws BadFile naming a
/// line that is damaged.
InspectedData inspect_clicks(const std::filesystem::path& path);

}  // namespace tutti
