#pragma once
// Small texts that a user named to be read: configurations, tables, lists. What lies there may be
// anything.

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tutti {

/// The kind of what has a name, for messages: "pipe (FIFO)", "folder", "socket", "device", "regular
/// file".
std::string_view kind_of_file(mode_t mode);

/// IoError saying what it is where something has this name that is no regular file: opening a pipe
/// waits for a writer. A shell's <(...) and /dev/stdin are taken: their writer has begun. Where
/// nothing has the name, opening says so.
void expect_regular_file(const std::filesystem::path& path);

/// The terms on which a text is read.
struct SmallText {
  std::string_view expected;         ///< for messages: "a configuration"
  bool any_kind = false;             ///< also a named pipe or a device, given by hand
  int64_t most = int64_t{64} << 20;  ///< bytes
};
/// The file, or a stream that is not open, with errno. A shell's <(...) and /dev/stdin are taken:
/// their writer has begun. IoError saying what it is where it is another kind of file, and where it
/// is longer than such a text can be.
std::ifstream open_small_text(const std::filesystem::path& path, const SmallText& terms);

}  // namespace tutti
