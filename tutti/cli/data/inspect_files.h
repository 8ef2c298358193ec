#pragma once
// Images, texts and click logs as `tutti data inspect` tells of them. The is_ functions say whether
// the path is such a thing, the others describe it and throw BadFile for files that cannot be read.

#include <filesystem>
#include <string>

namespace tutti::cli {

/// A listing for people, and a configuration to start from.
struct InspectedData {
  std::string listing, configuration;
};

/// Returns whether there are class folders below `path` or its "train", or tar shards.
bool is_image_set(const std::filesystem::path& path);
/// Describes a folder for which is_image_set() holds, or one archive. The headers of at most 256
/// images are read. Throws IoError where there are no images.
InspectedData inspect_images(const std::filesystem::path& path);

/// Returns whether the path is a text or a token file, or a folder that holds a set of them.
bool is_text_path(const std::filesystem::path& path);
InspectedData inspect_text(const std::filesystem::path& path);

/// Returns whether token files for training lie in both of its folders, source and target.
bool is_pair_set(const std::filesystem::path& folder);
InspectedData inspect_pairs(const std::filesystem::path& folder);

/// Returns whether `path` is a log that data.dataset = "clicks" reads (click_line.h), or a
/// folder whose "train" begins with one.
bool is_click_log(const std::filesystem::path& path);
/// Reads the first 100,000 lines of the log, or of a folder's first log; names a damaged line.
InspectedData inspect_clicks(const std::filesystem::path& path);

}  // namespace tutti::cli
