#pragma once
// Files that must survive a crash or a full disk: each call either succeeds or throws IoError
// naming the file and the system's reason, and closing means that the bytes are on the disk.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct XXH64_state_s;  // xxhash.h's XXH64_state_t

namespace tutti {

struct FileDigest {
  uint64_t bytes = 0;
  uint64_t xxh64 = 0;  ///< XXH64 of the whole content, seed 0
  bool operator==(const FileDigest&) const = default;
};

/// Writes a new file front to back. Destroyed before close(), it leaves a file that nobody should
/// use.
class DurableFile {
 public:
  explicit DurableFile(std::filesystem::path path);
  /// Writes to what is open already, and closes it; negative: opening it failed, errno says why.
  DurableFile(std::filesystem::path path, int descriptor);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Waits until the content is on the disk. Call once, last.
  FileDigest close();

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
  XXH64_state_s* hash_ = nullptr;
};

/// Throws IoError if there is no file of this name, IntactFileError if the system does not say.
void expect_file(const std::filesystem::path& path);

/// Reads at any place of an existing file. Safe from several threads at once. All that reads here
/// throws IoError if there is no file or it ends too early, or the disk is broken, and
/// IntactFileError if the system refuses to read it.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Fills `bytes` from `offset` on.
  void read(uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

FileDigest digest_of(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);
/// Replaces or makes a small file of our own: a reader sees the old content or the new one, never a
/// part. Takes the place of whatever has the name; for names that users give see result_file.h.
void replace_file(const std::filesystem::path& path, std::string_view text);
/// Makes renames and new names inside `directory` durable.
void sync_directory(const std::filesystem::path& directory);

}  // namespace tutti
