#pragma once
// Recognises the kinds of files that people have under the names of data and weights; no other
// place does. A reader that cannot continue with a file reports it through unreadable(): a file is
// called damaged only if it begins as the expected format does.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

// clang-format off
/// The kinds of files. `text` is text of an unknown kind; `unknown` is a format without a signature
/// (CIFAR, raw numbers), or one that is not in the list. Each line is a group:
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
  std::string_view name{};  ///< "a pointer file of Git LFS"; "something else" if unknown
  std::string remedy{};     ///< advice to the user, without a full stop; may be empty
};

/// Returns the text without the UTF-8 byte-order mark that programs of Windows put first.
std::string_view without_mark(std::string_view text);
/// Returns the length of such a mark at a file's beginning: 0 or 3.
int64_t mark_bytes(const FileBytes& file);

/// Says whether the content is text of any kind, or has no signature.
bool is_plain_text(Content content);
/// Says whether the file is a pointer to a file that was not fetched.
bool is_pointer(Content content);

/// Tells the kind of a file of `size` bytes from its first kFirstBytes bytes, or all if there are
/// fewer. A file that begins with only zeros is `zeros`.
inline constexpr size_t kFirstBytes = 1024;
FirstBytes first_bytes_of(std::span<const uint8_t> head, int64_t size);
/// Does the same for an open file. IoError where it cannot be read.
FirstBytes first_bytes_of(const FileBytes& file);

/// Returns the message of a reader that cannot continue with a file of the format `expected`, for
/// BadFile or IoError: "FILE: WHY: it is truncated or corrupted; fetch it again" where the file
/// begins as that format does; otherwise it says what was expected, what is there, and the remedy.
/// `why` says what was expected and what was found. For an `unknown` format the message says both.
std::string unreadable(const FileBytes& file, Content expected, std::string_view why);
/// Does the same by path, for a reader that has not kept the file open. If the file cannot be
/// opened, the message is the system's reason.
std::string unreadable(const std::filesystem::path& path, Content expected, std::string_view why);

/// Returns text such as "found a pointer file of Git LFS of 134 bytes: fetch its content with 'git
/// lfs pull'", for readers that take several formats.
std::string found_instead(const FileBytes& file);

}  // namespace tutti::data
