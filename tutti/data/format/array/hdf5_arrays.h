#pragma once
// Reads and writes HDF5 files, including NetCDF-4, as arrays.

#include <filesystem>
#include <vector>

#include "tutti/data/format/array/array_file.h"
#include "tutti/data/format/array/npy_arrays.h"
#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Says whether HDF5's signature is at byte 0, 512, 1024, 2048 ...
bool is_hdf5(const FileBytes& file);

/// Lists all data sets by their paths. Supports contiguous, compact and chunked layouts; deflate,
/// shuffle and Fletcher-32; integers of 1 to 8 bytes, f16, bf16, f32, f64 in either byte order,
/// enumerations, h5py's booleans. Anything else is listed with a problem. BadFile. In NetCDF-4 an
/// unlimited dimension is as long as the longest array along it; the other arrays end with their
/// fill values, or NetCDF's default ones if none is stored. `circles` gets the circles by which
/// names can be shortened (array_file.h).
std::vector<StoredArray> read_hdf5(const FileBytes& file, const ArrayFileOptions& options,
                                   NameCircles* circles = nullptr);

struct Hdf5Storage {
  std::vector<int64_t> chunk{};  ///< empty: contiguous; else one extent per dimension
  int deflate = 0;               ///< 1 to 9, needs chunks
  bool shuffle = false;          ///< needs chunks
};

/// Writes a file with these data sets, whose names differ, and the groups in their paths, and
/// closes it. The whole file is made in memory first. IoError naming the file and the reason.
void write_hdf5(const std::filesystem::path& path, const std::vector<ArrayRef>& arrays,
                const Hdf5Storage& storage = {});

}  // namespace tutti::data
