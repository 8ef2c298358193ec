#pragma once
// Files that must survive a crash or a full disk. Each call either succeeds or throws IoError
// naming the file and the system's reason; after close() the bytes are on the disk.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct XXH64_state_s;  // xxhash.h's XXH64_state_t

namespace tutti::keep {

struct FileDigest {
  uint64_t bytes = 0;
  uint64_t xxh64 = 0;  ///< XXH64 of the whole content, seed 0
  bool operator==(const FileDigest&) const = default;
};

/// Writes a new file from front to back. If destroyed before close(), it leaves a file that must
/// not be used.
class DurableFile {
 public:
  explicit DurableFile(std::filesystem::path path);
  /// Writes to an open descriptor and closes it. Negative: opening it failed, and errno holds the
  /// reason.
  DurableFile(std::filesystem::path path, int descriptor);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Replaces text that was written; the digest remains the one of what was written first.
  void overwrite(uint64_t offset, std::string_view text);
  /// Waits until the content is on the disk. Call once, last.
  FileDigest close();

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
  XXH64_state_s* hash_ = nullptr;
};

/// Throws IoError if there is no file of this name, IntactFileError if the system does not report
/// it.
void expect_file(const std::filesystem::path& path);

/// Reads at any position of an existing file. Safe from several threads at once. Every read here
/// throws IoError if the file is missing or too short, or the disk is broken, and IntactFileError
/// if the system refuses to read the file.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Fills `bytes` from `offset` onwards.
  void read(uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

FileDigest digest_of(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);
/// Makes or replaces a small file of Tutti's own: a reader sees the old content or the new one,
/// never a part. It replaces whatever has the name; for names that users give see result_file.h.
void replace_file(const std::filesystem::path& path, std::string_view text);
/// Makes renames and new names inside `directory` durable.
void sync_directory(const std::filesystem::path& directory);

}  // namespace tutti::keep
