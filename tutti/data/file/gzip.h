#pragma once
// GzipReader: the content of a gzip file (RFC 1952), inflated as far as it is asked for.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace tutti::data {

/// Inflates a file of one or more members from its start; holds 64 KiB. One thread.
class GzipReader {
 public:
  /// BadFile if it is missing or no gzip file, IoError if it cannot be read.
  explicit GzipReader(const std::filesystem::path& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Fills `out`; fewer bytes only where the content ends. BadFile if the file ends early, fails a
  /// checksum or goes on with bytes that are no gzip member.
  size_t read(std::span<uint8_t> out);

  /// More bytes than the file can hold: deflate gains at most a factor of 1032.
  int64_t most_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti::data
