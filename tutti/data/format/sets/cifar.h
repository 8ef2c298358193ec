#pragma once
// Reads CIFAR-10's binary version: a record is one label byte, then 1024 bytes each of red, green
// and blue, row by row (https://www.cs.toronto.edu/~kriz/cifar.html). Ten classes, 32 x 32 pixels.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/format/sets/stored_images.h"

namespace tutti::data {

inline constexpr int64_t kCifarRecordBytes = 1 + 3 * 32 * 32;

/// Returns data_batch_1.bin to data_batch_5.bin, or test_batch.bin.
std::vector<std::string> cifar_files(bool train);

/// Opens one file with any positive number of records. BadFile naming the file, what was expected
/// and what was found; ConfigError for a label that `limit` does not allow.
StoredImages open_cifar_file(const std::filesystem::path& file, const ClassLimit& limit = {});

/// Opens a set. `place` is the directory of the batches (with an optional batches.meta.txt, which
/// then names the classes) or one .bin file.
std::unique_ptr<StoredImages> open_cifar(const std::filesystem::path& place, bool train,
                                         const ClassLimit& limit = {});

}  // namespace tutti::data
