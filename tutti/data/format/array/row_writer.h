#pragma once
// RowWriter: an array written row by row, so that it need not fit memory: .npy, HDF5 or NetCDF-4.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/format/array/array_file.h"

namespace tutti::data {

/// A number or a text for each row.
struct RowColumn {
  std::string name{}, meaning{};  ///< meaning: its attribute long_name
  std::vector<int64_t> numbers{};
  std::vector<std::string> words{};  ///< where there are no numbers
};

struct RowArray {
  std::string name = "array";             ///< of the data set or variable; .npy has none
  ElementType type = ElementType::f32;    ///< f32, u8 or i32
  std::vector<int64_t> shape{};           ///< the first extent counts the rows
  std::vector<std::string> dimensions{};  ///< a name for each; NetCDF-4 alone needs them
  std::map<std::string, ArrayAttribute> attributes{};
  std::vector<RowColumn> columns{};  ///< as long as the rows are many
};

/// One thread writes. The file has another name until close(), and goes where that is not reached:
/// a reader sees the whole array or none.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  /// The next rows, row-major. IoError naming the file.
  virtual void append(const void* values, int64_t rows) = 0;
  /// After the last row. CHECKs that there were as many as the shape says. IoError.
  virtual void close() = 0;
};

/// By the path's ending: .npy; .h5 and .hdf5; .nc and .nc4, whose dimensions are HDF5's dimension
/// scales as the NetCDF-4 library makes them. Attributes and columns, if there are any, stand in
/// the file; those of x.npy, which has no place for them, in x.npy.json. ConfigError beginning with
/// `key` for another ending.
std::unique_ptr<RowWriter> open_row_writer(const std::filesystem::path& path, const RowArray& array,
                                           const std::string& key);

/// The same ConfigError, before there is anything to write.
void require_row_ending(const std::filesystem::path& path, const std::string& key);

/// The two forms: row_writer.cpp, hdf5_rows.cpp.
std::unique_ptr<RowWriter> open_npy_rows(const std::filesystem::path& path, const RowArray& array);
std::unique_ptr<RowWriter> open_hdf5_rows(const std::filesystem::path& path, const RowArray& array,
                                          bool netcdf);

}  // namespace tutti::data
