#pragma once
// IDX, the format of MNIST and its successors: big-endian; magic 00 00 type rank, then the extents
// as 32-bit numbers, then the data. Images are u8 of rank 3 (magic 0x803), labels u8 of rank 1
// (0x801). Files may be gzipped (.gz).

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/format/file_bytes.h"

namespace tutti::data {

/// A checked IDX file of bytes: `data` has as many bytes as the product of the extents and points
/// into `file`.
struct IdxArray {
  std::vector<int64_t> extents;
  std::span<const uint8_t> data;
  FileBytes file;
};

/// Reads an IDX file of unsigned bytes with `rank` extents; a path ending in .gz is inflated.
/// IoError naming file, expected, found.
IdxArray read_idx(const std::filesystem::path& path, int rank);

/// The images and the labels file of a split as they lie in `directory`: train-images-idx3-ubyte or
/// t10k-..., plain or .gz (plain wins). A missing file yields its plain name.
struct IdxFiles {
  std::filesystem::path images, labels;
};
IdxFiles idx_files(const std::filesystem::path& directory, bool train);

std::unique_ptr<Dataset> open_idx(const std::filesystem::path& directory, bool train,
                                  std::vector<std::string> class_names);

}  // namespace tutti::data
