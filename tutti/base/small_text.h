#pragma once
// Opens small texts that a user named: configurations, tables, lists. The path may lead to
// anything.

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tutti {

/// Returns the kind of a file, for messages: "pipe (FIFO)", "folder", "socket", "device", "regular
/// file".
std::string_view kind_of_file(mode_t mode);

/// Throws IoError with the kind of file if something of this name is not a regular file, because
/// opening a pipe waits for a writer. Accepts a shell's <(...) and /dev/stdin, whose writer has
/// begun. If nothing has the name, opening reports it.
void expect_regular_file(const std::filesystem::path& path);

/// How a text is read.
struct SmallText {
  std::string_view expected;         ///< for messages: "a configuration"
  bool any_kind = false;             ///< also accept a named pipe or a device given by the user
  int64_t most = int64_t{64} << 20;  ///< largest size in bytes
};
/// Returns the file, or a stream that is not open, with errno. Accepts a shell's <(...) and
/// /dev/stdin, whose writer has begun. Throws IoError with the kind of file if it is another kind,
/// or if it is longer than such a text can be.
std::ifstream open_small_text(const std::filesystem::path& path, const SmallText& terms);

}  // namespace tutti
