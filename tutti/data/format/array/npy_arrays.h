#pragma once
// Reads NumPy's .npy (formats 1.0 to 3.0) and .npz (a zip of .npy, members stored or deflated,
// zip64), and writes .npy:
//   .npy  \x93NUMPY major minor, bytes of the header (u16, from 2.0 on u32), the header as Python
//         {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, then the elements
//   .npz  members name.npy; other members are skipped

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/element_type.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Reads one array, named "array" in a .npy. Types '?', 'b', 'i', 'u', 'f' of 1 to 8 bytes in
/// either byte order; others (objects, texts, complex numbers, records) are listed with a problem.
/// BadFile.
std::vector<StoredArray> read_npy(const FileBytes& file);
std::vector<StoredArray> read_npz(const FileBytes& file);

/// An array in memory to be written.
struct ArrayRef {
  std::string name{};
  ElementType type = ElementType::u8;
  std::vector<int64_t> shape{};
  const void* values = nullptr;                        ///< row-major
  std::map<std::string, ArrayAttribute> attributes{};  ///< only for HDF5; numbers as f64

  int64_t bytes() const;
};

/// Returns the header of a .npy of format 1.0, C order. NumPy has no bf16: ConfigError.
std::string npy_start(ElementType type, const std::vector<int64_t>& shape);
/// Writes a .npy of format 1.0. IoError naming the file; ConfigError for bf16, which NumPy lacks.
void write_npy_array(const std::filesystem::path& path, const ArrayRef& array);

}  // namespace tutti::data
