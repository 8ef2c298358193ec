#pragma once
// Reads raw binary files, described by a small TOML file beside them:
//   [[array]]
//   name = "particles"        # name of the array
//   file = "32.nyx"           # relative to the description
//   type = "f64"              # bool i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64
//   shape = [32768, 7]        # row-major
//   offset = 16               # bytes before the first element; default 0
//   byte_order = "big"        # default "little"

#include <filesystem>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Reads `description`, opened from `path`. BadFile naming the description, its line and the key,
/// or the raw file if it is missing or shorter than described; it may be longer.
std::vector<StoredArray> read_raw_arrays(const FileBytes& description,
                                         const std::filesystem::path& path);

}  // namespace tutti::data
