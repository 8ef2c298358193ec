#pragma once
// HDF5 files as arrays, NetCDF-4 among them.

#include <filesystem>
#include <span>
#include <vector>

#include "tutti/data/format/array/array_file.h"
#include "tutti/data/format/array/npy_arrays.h"
#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Whether HDF5's signature stands at byte 0, 512, 1024, 2048 ...
bool is_hdf5(const FileBytes& file);

/// All data sets, by their paths. Contiguous, compact and chunked layouts; deflate, shuffle and
/// Fletcher-32; integers of 1 to 8 bytes, f16, bf16, f32, f64 in either byte order, enumerations,
/// h5py's booleans. Anything else is listed with a problem. BadFile. In NetCDF-4 an unlimited
/// dimension is as long as the longest array along it; the others end with their fill values, or
/// with NetCDF's default ones where none is stored.
/// `circles` gets what a name may be shortened by (array_file.h).
std::vector<StoredArray> read_hdf5(const FileBytes& file, const ArrayFileOptions& options,
                                   NameCircles* circles = nullptr);

struct Hdf5Storage {
  std::vector<int64_t> chunk{};  ///< empty: contiguous; otherwise one extent a dimension
  int deflate = 0;               ///< 1 to 9, needs chunks
  bool shuffle = false;          ///< needs chunks
};

/// Writes a file of these data sets, groups made as their paths ask, and closes it. Names differ.
/// It is made in memory as a whole before it is written. IoError naming the file and the reason.
void write_hdf5(const std::filesystem::path& path, std::span<const ArrayRef> arrays,
                const Hdf5Storage& storage = {});

}  // namespace tutti::data
