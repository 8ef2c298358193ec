#pragma once
// A RowWriter writes an array row by row, so that it need not fit memory: .npy, HDF5 or NetCDF-4.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/format/array/array_file.h"

namespace tutti::data {

/// Has a number or a text for each row.
struct RowColumn {
  std::string name{}, meaning{};  ///< meaning: its attribute long_name
  std::vector<int64_t> numbers{};
  std::vector<std::string> words{};  ///< used if there are no numbers
};

struct RowArray {
  std::string name = "array";             ///< name of the data set or variable; .npy has none
  ElementType type = ElementType::f32;    ///< f32, u8 or i32
  std::vector<int64_t> shape{};           ///< the first extent counts the rows
  std::vector<std::string> dimensions{};  ///< a name for each; only NetCDF-4 needs them
  std::map<std::string, ArrayAttribute> attributes{};
  std::vector<RowColumn> columns{};  ///< each has one entry per row
};

/// For one thread. The file has a temporary name until close(), and is removed without it: a reader
/// sees the whole array or none.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  /// Writes the next rows, row-major. IoError naming the file.
  virtual void append(const void* values, int64_t rows) = 0;
  /// Completes the file after the last row. CHECKs the number of rows against the shape. IoError.
  virtual void close() = 0;
};

/// Chooses the format by the path's ending: .npy; .h5 and .hdf5; .nc and .nc4, with HDF5's
/// dimension scales for dimensions as in the NetCDF-4 library. Attributes and columns, if any, are
/// stored in the file, but for x.npy, which has no place for them, in x.npy.json. ConfigError
/// beginning with `key` for another ending.
std::unique_ptr<RowWriter> open_row_writer(const std::filesystem::path& path, const RowArray& array,
                                           const std::string& key);

/// Throws the same ConfigError before there is anything to write.
void require_row_ending(const std::filesystem::path& path, const std::string& key);

/// These write the two forms: row_writer.cpp, hdf5_rows.cpp.
std::unique_ptr<RowWriter> open_npy_rows(const std::filesystem::path& path, const RowArray& array);
std::unique_ptr<RowWriter> open_hdf5_rows(const std::filesystem::path& path, const RowArray& array,
                                          bool netcdf);

}  // namespace tutti::data
