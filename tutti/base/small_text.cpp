#include "tutti/base/small_text.h"

#include <system_error>

#include "tutti/base/error.h"

namespace tutti {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse_kind(const fs::path& path, std::string_view expected, mode_t found) {
  throw IoError(fmt::format("{}: expected {}, found a {}: give the path of a regular file",
                            path.string(), expected, kind_of_file(found)));
}

/// Whether a pipe has a name; one without is reached only through /dev/fd or /proc, where links
/// lead to no path.
bool has_name(const fs::path& path) {
  std::error_code nowhere;
  return !fs::canonical(path, nowhere).empty();
}

/// Whether reading it cannot wait for a writer that may never come.
bool is_file_or_begun(const fs::path& path, mode_t mode) {
  return S_ISREG(mode) || (S_ISFIFO(mode) && !has_name(path));
}

}  // namespace

std::string_view kind_of_file(mode_t mode) {
  return S_ISREG(mode)    ? "regular file"
         : S_ISDIR(mode)  ? "folder"
         : S_ISFIFO(mode) ? "pipe (FIFO)"
         : S_ISLNK(mode)  ? "symbolic link"
         : S_ISSOCK(mode) ? "socket"
                          : "device";
}

void expect_regular_file(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !is_file_or_begun(path, status.st_mode))
    refuse_kind(path, "a file", status.st_mode);
}

std::ifstream open_small_text(const fs::path& path, const SmallText& terms) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  const bool taken =
      is_file_or_begun(path, status.st_mode) || (terms.any_kind && !S_ISDIR(status.st_mode));
  if (!taken) refuse_kind(path, terms.expected, status.st_mode);
  if (S_ISREG(status.st_mode) && status.st_size > terms.most)
    throw IoError(
        fmt::format("{}: expected {}, found {} bytes, and {} are the most: give another "
                    "file",
                    path.string(), terms.expected, status.st_size, terms.most));
  return std::ifstream(path, std::ios::binary);
}

}  // namespace tutti
