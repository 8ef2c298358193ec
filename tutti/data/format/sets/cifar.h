#pragma once
// Reads CIFAR-10's binary version: a record is one label byte, then 1024 bytes each of red, green
// and blue, row by row (https://www.cs.toronto.edu/~kriz/cifar.html). Ten classes, 32 x 32 pixels.

#include <filesystem>
#include <vector>

#include "tutti/data/format/sets/known_dataset.h"

namespace tutti::data {

inline constexpr int64_t kCifarRecordBytes = 1 + 3 * 32 * 32;

/// Lists the sets whose files are read here. A batches.meta.txt beside the files names the classes.
std::vector<KnownDataset> cifar_datasets();

/// Opens one file with any positive number of records, as KnownDataset::open_file.
StoredImages open_cifar_file(const std::filesystem::path& file, const ClassLimit& limit = {});

}  // namespace tutti::data
