#pragma once
// FileBytes: the content of a file, read by position.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::data {

/// A file that is not there, or whose content is wrong: another copy of it would help.
class BadFile : public IoError {
  using IoError::IoError;
};

/// Whether `path` leads to a regular file; where that cannot be known it does not, and opening it
/// says why.
bool is_file(const std::filesystem::path& path);

/// The little-endian number that lies at `bytes`, aligned or not.
template <class T>
T number_at(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Whether this process asks for the first time, about `path` by any of its spellings: a warning of
/// a file that is opened again and again is said once.
bool first_warning(const std::filesystem::path& path, std::string_view warning);

/// Bytes of an open file or of memory. Copies are cheap and mean the same bytes; every call may run
/// on any number of threads.
///
/// Files are read by position and not mapped: the system's cache holds them once for all ranks of a
/// node either way, but a file that is shortened while it is in use, or a disk that fails, is then
/// an error with a message, where a mapping ends the process by a signal.
///
/// A set may have more files than a process may have open. So a quarter of the limit (ulimit -n)
/// stays open, at most 4096: those that were read last. The others are opened anew when they are
/// read again, and must then be as long as they were, with the same time of modification.
class FileBytes {
 public:
  /// Opens a file and reads nothing. BadFile if it is missing; IoError if it is not a regular file
  /// (a pipe would wait for ever) or may not be read. Both name it.
  static FileBytes open(const std::filesystem::path& path);
  /// Bytes in memory; `name` is for messages.
  static FileBytes own(std::vector<uint8_t> bytes, std::string name);

  int64_t size() const;
  const std::string& name() const;

  /// Copies out.size() bytes from `offset` on, all of them within size(). IoError naming the file
  /// if it has been shortened or removed, or the disk fails. May outlive this object, so that a
  /// thread that hangs in the file system can be left behind.
  void read(int64_t offset, std::span<uint8_t> out) const;

  /// Whether files that are opened from now on are read past the system's cache (O_DIRECT), in
  /// reads of kLeastDirect bytes and more, where their file system can. Of the process.
  static void set_direct(bool direct);
  static constexpr size_t kLeastDirect = size_t{64} << 10;

  /// Bytes that read() of all files of this process has brought from the system so far.
  static int64_t bytes_read();

  /// Where the bytes from `offset` on lie, of bytes in memory; null of a file.
  const uint8_t* in_memory(int64_t offset) const;

  /// Reads everything from `offset` on, in order, in blocks of at most 1 MiB; `look` gets each
  /// block and its position in the file.
  void walk(int64_t offset,
            const std::function<void(std::span<const uint8_t> block, int64_t at)>& look) const;

  /// Asks the system to bring the whole file into its cache; does not wait for it.
  void read_ahead() const;

 private:
  struct Content;
  explicit FileBytes(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  std::shared_ptr<const Content> content_;  // shared with reads that may outlive this object
};

/// Picks the byte at `first` and every `stride`-th after it out of blocks as walk() hands them
/// over.
struct StridedBytes {
  int64_t first = 0, stride = 1;
  std::vector<uint8_t> bytes{};

  void look(std::span<const uint8_t> block, int64_t at);
};

}  // namespace tutti::data
