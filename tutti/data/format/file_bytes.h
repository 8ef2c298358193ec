#pragma once
// FileBytes: the whole content of a file as read-only bytes, without a copy where the file is not
// compressed.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace tutti::data {

/// Owns a read-only mapping or a vector; move-only. The bytes stay where they are when it moves.
/// Mappings are shared, so the ranks of one node hold a data set once. A file must not be shortened
/// while it is mapped.
class FileBytes {
 public:
  /// Maps a file; IoError naming it if it is missing, not a file, or unreadable.
  static FileBytes map(const std::filesystem::path& path);
  /// Inflates a gzip file into memory; IoError if it is not gzip, ends early, fails its CRC or is
  /// followed by other bytes.
  static FileBytes inflate(const std::filesystem::path& path);
  static FileBytes own(std::vector<uint8_t> bytes);

  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  FileBytes() = default;
  void unmap() noexcept;

  std::span<const uint8_t> bytes_;
  bool mapped_ = false;
  std::vector<uint8_t> owned_;
};

}  // namespace tutti::data
