#pragma once
// The one place that knows what people have under the names of data and weights. A reader that
// cannot go on with a file says so through unreadable(): a file is called damaged only where its
// first bytes are those of the expected format.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

// clang-format off
/// A file may be any of these. `text` is text of which nothing more is known; `unknown` is a format
/// without a mark of its own (CIFAR, raw numbers), or none that is known here. A group a line:
enum class Content : uint8_t {
  unknown, empty, zeros,
  text, utf16, utf32, csv, json, html, xml,
  lfs_pointer, annex_pointer, dvc_pointer,
  parts_index, safetensors, torch_zip, torch_tar, pickle, gguf,
  zip, npz, gzip, bzip2, xz, zstd, lz4, seven_zip, rar, tar,
  npy, newer_npy, hdf5, netcdf, newer_netcdf, tiff, idx, tfrecord,
  xtc, trr, dcd, amber_text, xyz_text, lammps_text, pdb_text, gro_text,
  jpeg, png, bmp, webp, gif, heif, jpeg2000,
  dicom, fits, matlab, grib, parquet, arrow, sqlite,
  pdf, program, macos
};
// clang-format on

struct FirstBytes {
  Content content = Content::unknown;
  std::string_view name{};  ///< "a pointer file of Git LFS"; of unknown content "something else"
  std::string remedy{};     ///< what to do with it, without a full stop; may be empty
};

/// A text without the byte-order mark of UTF-8 that Windows' programs begin it with.
std::string_view without_mark(std::string_view text);
/// Bytes of such a mark at a file's beginning: 0 or 3.
int64_t mark_bytes(const FileBytes& file);

/// Text of any kind, or what has no mark of its own.
bool is_plain_text(Content content);
/// A pointer to a file that was not fetched.
bool is_pointer(Content content);

/// Tells what a file of `size` bytes is, by its first ones: kFirstBytes of them, or all. A file
/// that begins with zeros alone is `zeros`.
inline constexpr size_t kFirstBytes = 1024;
FirstBytes first_bytes_of(std::span<const uint8_t> head, int64_t size);
/// The same of a file. IoError where it cannot be read.
FirstBytes first_bytes_of(const FileBytes& file);

/// The message of a reader that cannot go on with a file of the format `expected`, for BadFile or
/// IoError: "FILE: WHY: it is truncated or corrupted; fetch it again" where the file begins as that
/// format does; otherwise what was expected, what is there, and what to do with it. `why` says what
/// was expected and what was found. Of an `unknown` format both are said.
std::string unreadable(const FileBytes& file, Content expected, std::string_view why);
/// The same by a path, for a reader that has not kept the file open. Where it cannot be opened, the
/// message is the system's reason.
std::string unreadable(const std::filesystem::path& path, Content expected, std::string_view why);

/// "found a pointer file of Git LFS of 134 bytes: fetch its content with 'git lfs pull'", for
/// readers that take several formats.
std::string found_instead(const FileBytes& file);

}  // namespace tutti::data
