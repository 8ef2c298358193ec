#pragma once
// Whole data sets of generated pictures, as ImageNet's lie: class folders of JPEGs, or tar shards.

#include <filesystem>

#include "tutti/generate/pictures/pictures.h"
#include "tutti/generate/sample_sets.h"

namespace tutti::data {

/// FOLDER/train and FOLDER/validation with a folder a class of "img_00000000.jpg", or, with
/// `per_tar` above 0, with as many pictures a shard: "shard-000000.tar" of KEY.jpg and KEY.cls.
/// Every 20th JPEG is progressive, qualities differ. The files do not depend on `threads`. They are
/// made in a hidden folder and replace, with `replace`, a set that was generated before, never
/// other files. ConfigError where files lie there, IoError.
void write_pictures(const std::filesystem::path& folder, const PictureSpec& spec,
                    const SampleCounts& counts, int64_t per_tar, bool replace, int threads);

}  // namespace tutti::data
