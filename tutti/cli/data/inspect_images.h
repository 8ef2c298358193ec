#pragma once
// Describes class folders and tar archives of images for `tutti data inspect`.

#include <filesystem>
#include <string>

namespace tutti {

/// A listing for people, and a configuration to start from.
struct InspectedData {
  std::string listing, configuration;
};

/// Returns whether there are class folders below `path` or its "train", or tar shards.
bool is_image_set(const std::filesystem::path& path);
/// Describes a folder for which is_image_set() holds, or one archive. The headers of at most 256
/// images are read. Throws IoError where there are no images.
InspectedData inspect_images(const std::filesystem::path& path);

}  // namespace tutti
