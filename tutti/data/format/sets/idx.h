#pragma once
// Reads IDX, the format of MNIST and its successors: big-endian; magic 00 00 type rank, then the
// extents as 32-bit numbers, then the data. Images are u8 of rank 3 (magic 0x803), labels u8 of
// rank 1 (0x801). Files may be gzipped (.gz).

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/format/sets/stored_images.h"

namespace tutti::data {

/// A checked IDX file of bytes: `file` has, from `first` on, as many bytes as the product of the
/// extents.
struct IdxArray {
  std::vector<int64_t> extents;
  int64_t first = 0;
  FileBytes file;

  int64_t elements() const { return file.size() - first; }
};

/// Opens an IDX file of unsigned bytes with `rank` extents. The header is checked first, and a path
/// ending in .gz is inflated only as far as the header announces. BadFile naming the file, what was
/// expected and what was found.
IdxArray read_idx(const std::filesystem::path& path, int rank);

/// Reads all labels of a file of rank 1.
std::vector<uint8_t> read_idx_labels(const std::filesystem::path& path);

/// The images and the labels file of a split in `directory`: train-images-idx3-ubyte or t10k-...,
/// plain or .gz (plain wins), or with a dot, train-images.idx3-ubyte, as on some mirrors. For a
/// missing file, its plain name.
struct IdxFiles {
  std::filesystem::path images, labels;
};
IdxFiles idx_files(const std::filesystem::path& directory, bool train);

/// Opens a split of `directory`, with up to 256 classes and images of any size. Errors as
/// read_idx(); ConfigError for a label beyond the classes.
std::unique_ptr<StoredImages> open_idx(const std::filesystem::path& directory, bool train,
                                       const Classes& classes);

}  // namespace tutti::data
