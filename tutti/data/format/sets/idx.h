#pragma once
// IDX, the format of MNIST and its successors: big-endian; magic 00 00 type rank, then the extents
// as 32-bit numbers, then the data. Images are u8 of rank 3 (magic 0x803), labels u8 of rank 1
// (0x801). Files may be gzipped (.gz).

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/format/sets/stored_images.h"

namespace tutti::data {

/// A checked IDX file of bytes: from `first` on, `file` has as many bytes as the product of the
/// extents.
struct IdxArray {
  std::vector<int64_t> extents;
  int64_t first = 0;
  FileBytes file;

  int64_t elements() const { return file.size() - first; }
};

/// Opens an IDX file of unsigned bytes with `rank` extents. The header is checked before anything
/// else is read, and a path ending in .gz is inflated just as far as the header announces. BadFile
/// naming file, expected, found.
IdxArray read_idx(const std::filesystem::path& path, int rank);

/// All labels of a file of rank 1.
std::vector<uint8_t> read_idx_labels(const std::filesystem::path& path);

/// The images and the labels file of a split as they lie in `directory`: train-images-idx3-ubyte or
/// t10k-..., plain or .gz (plain wins), or with a dot, train-images.idx3-ubyte, as some mirrors
/// have them. A missing file yields its plain name.
struct IdxFiles {
  std::filesystem::path images, labels;
};
IdxFiles idx_files(const std::filesystem::path& directory, bool train);

/// A split of `directory`. Any number of classes up to 256, any size of image. Errors as
/// read_idx(); ConfigError for a label beyond the classes.
std::unique_ptr<StoredImages> open_idx(const std::filesystem::path& directory, bool train,
                                       const Classes& classes);

}  // namespace tutti::data
