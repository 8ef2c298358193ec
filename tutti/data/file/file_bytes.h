#pragma once
// FileBytes reads the content of a file by position.

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

/// A file is missing, or its content is wrong: another copy of it would help.
class BadFile : public IoError {
 public:
  using IoError::IoError;
  template <class First, class... Rest>
  BadFile(fmt::format_string<First, Rest...> message, First&& first, Rest&&... rest)
      : IoError(fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...)) {}
};

/// Says whether `path` leads to a regular file. If that cannot be found out, the answer is no, and
/// opening the file reports why.
bool is_file(const std::filesystem::path& path);

/// Returns the little-endian number at `bytes`, aligned or not.
template <class T>
T number_at(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Returns true on the first call in this process for this warning and `path` in any spelling, so
/// that a file that is opened again and again is warned about once.
bool first_warning(const std::filesystem::path& path, std::string_view warning);

/// The bytes of an open file or of memory. Copies are cheap and share the bytes; every call may run
/// on any number of threads.
///
/// Files are read by position and not mapped: the system's cache holds them once for all ranks of a
/// node either way, but a file that is shortened while it is in use, or a disk that fails, is then
/// an error with a message, where a mapping ends the process by a signal.
///
/// A set may have more files than a process may have open. So only the files read last stay open: a
/// quarter of the limit (ulimit -n), at most 4096. The others are reopened when they are read
/// again, and must then have the same length and time of modification.
class FileBytes {
 public:
  /// Opens a file and reads nothing. BadFile if it is missing; IoError if it is not a regular file
  /// (a pipe would wait for ever) or may not be read. Both errors name the file.
  static FileBytes open(const std::filesystem::path& path);
  /// Holds bytes in memory; `name` is for messages.
  static FileBytes own(std::vector<uint8_t> bytes, std::string name);

  int64_t size() const;
  const std::string& name() const;

  /// Copies out.size() bytes from `offset` on, all of which must lie within size(). IoError naming
  /// the file if it has been shortened or removed, or if the disk fails. The call may outlive this
  /// object, so that a thread that hangs in the file system can be left behind.
  void read(int64_t offset, std::span<uint8_t> out) const;

  /// Says whether files that this process opens from now on bypass the system's cache (O_DIRECT) in
  /// reads of kLeastDirect bytes or more, where their file system supports it.
  static void set_direct(bool direct);
  static constexpr size_t kLeastDirect = size_t{64} << 10;

  /// Returns how many bytes read() has brought from the system so far, for all files of this
  /// process.
  static int64_t bytes_read();

  /// Returns the address of the bytes from `offset` on if they are in memory; null for a file.
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

/// Picks the byte at `first` and every `stride`-th after it out of the blocks of walk().
struct StridedBytes {
  int64_t first = 0, stride = 1;
  std::vector<uint8_t> bytes{};

  void look(std::span<const uint8_t> block, int64_t at);
};

}  // namespace tutti::data
