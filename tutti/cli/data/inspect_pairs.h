#pragma once
// tutti data inspect: folders of token pairs.

#include "tutti/cli/data/inspect_images.h"

namespace tutti {

/// Returns whether token files for training lie in both of its folders, source and target.
bool is_pair_set(const std::filesystem::path& folder);
/// Throws BadFile for files that cannot be read.
InspectedData inspect_pairs(const std::filesystem::path& folder);

}  // namespace tutti
