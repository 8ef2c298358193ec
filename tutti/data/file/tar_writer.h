#pragma once
// Writing of tar archives: ustar, regular files alone, without times or owners, so that the same
// files are the same bytes.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>

namespace tutti::data {

class TarWriter {
 public:
  /// IoError naming the file where it cannot be made.
  explicit TarWriter(const std::filesystem::path& path);
  /// `name` has at most 100 bytes.
  void add(std::string_view name, std::span<const uint8_t> bytes);
  /// The closing blocks; an archive without them is incomplete. IoError where writing failed.
  void finish();

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace tutti::data
