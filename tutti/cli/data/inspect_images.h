#pragma once
// What `tutti data inspect` says of class folders and tar archives of images.

#include <filesystem>
#include <string>

namespace tutti {

/// A listing for people, and a configuration to start from.
struct InspectedData {
  std::string listing, configuration;
};

/// Whether there are class folders below `path` or its "train", or tar shards.
bool is_image_set(const std::filesystem::path& path);
/// A folder as is_image_set() knows it, or one archive. The headers of at most 256 images are read.
/// IoError where there are no images.
InspectedData inspect_images(const std::filesystem::path& path);

}  // namespace tutti
