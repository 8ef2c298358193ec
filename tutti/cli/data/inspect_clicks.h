#pragma once
// Describes a click log for `tutti data inspect`.

#include <filesystem>

#include "tutti/cli/data/inspect_images.h"

namespace tutti {

/// Returns whether `path` is a log that data.dataset = "clicks" reads (click_line.h), or a
/// folder whose "train" begins with one.
bool is_click_log(const std::filesystem::path& path);
/// Reads the first 100,000 lines of the log, or of a folder's first log. Throws BadFile naming a
/// damaged line.
InspectedData inspect_clicks(const std::filesystem::path& path);

}  // namespace tutti
