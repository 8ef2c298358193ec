#pragma once
// Writes whole data sets of generated pictures in ImageNet's layout: class folders of JPEGs, or tar
// shards.

#include <filesystem>

#include "tutti/generate/pictures/pictures.h"
#include "tutti/generate/sample_sets.h"

namespace tutti::generate {

/// Writes FOLDER/train and FOLDER/validation with a folder per class of "img_00000000.jpg", or,
/// with `per_tar` above 0, with as many pictures per shard: "shard-000000.tar" with KEY.jpg and
/// KEY.cls. Every 20th JPEG is progressive, qualities vary. The files do not depend on `threads`.
/// They are made in a hidden folder and, with `replace`, replace a previously generated set, but
/// never other files. ConfigError if there are files; IoError.
void write_pictures(const std::filesystem::path& folder, const PictureSpec& spec,
                    const SampleCounts& counts, int64_t per_tar, bool replace, int threads);

}  // namespace tutti::generate
