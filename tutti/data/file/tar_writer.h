#pragma once
// Writes tar archives: ustar, only regular files, without times or owners, so that equal files give
// equal bytes.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>

namespace tutti::data {

class TarWriter {
 public:
  /// Creates the file. IoError naming it if that fails.
  explicit TarWriter(const std::filesystem::path& path);
  /// Adds a file; `name` has at most 100 bytes.
  void add(std::string_view name, std::span<const uint8_t> bytes);
  /// Writes the closing blocks; an archive without them is incomplete. IoError if writing failed.
  void finish();

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace tutti::data
