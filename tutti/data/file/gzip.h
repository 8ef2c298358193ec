#pragma once
// GzipReader inflates the content of a gzip file (RFC 1952) as far as it is asked for.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace tutti::data {

/// Inflates a file of one or more members from its start; holds 64 KiB. For one thread.
class GzipReader {
 public:
  /// BadFile if the file is missing or no gzip file, IoError if it cannot be read.
  explicit GzipReader(const std::filesystem::path& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Fills `out`; returns the bytes written, fewer only where the content ends. BadFile if the file
  /// ends early, fails a checksum or continues with bytes that are no gzip member.
  size_t read(std::span<uint8_t> out);

  /// Returns an upper bound of the inflated bytes: deflate gains at most a factor of 1032.
  int64_t most_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti::data
