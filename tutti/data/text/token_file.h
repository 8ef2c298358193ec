#pragma once
// Reads and writes token files: text as numbers; each file is a shard of a part of a data set.
// Little-endian:
//
//   byte  0  "TUTTITOK"
//         8  u32 version, 1
//        12  u32 bytes of a token, 2 or 4
//        16  u32 vocabulary: tokens lie below it
//        20  i32 the token that begins a document; -1: there is none
//        24  u64 number of tokens in the file
//        32  u64 XXH64 of the tokens' bytes
//        40  u32 number of the shard, from 0;  44 u32 shards of the part
//        48  u64 XXH64 of the tokenizer's vocabulary; 0: not known
//        56  u64 XXH64 of the 56 bytes before
//        64  the tokens

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/content_hash.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

struct TokenHeader {
  uint32_t token_bytes = 2;
  int64_t vocabulary = 0;
  int32_t end_token = -1;
  int64_t count = 0;
  uint64_t checksum = 0;
  int64_t shard = 0, shards = 1;
  uint64_t tokenizer = 0;  ///< Tokenizer::identity()
};

inline constexpr int64_t kTokenHeaderBytes = 64;
/// Most tokens of a vocabulary. The name of each is kept in memory, whatever the size of the file.
inline constexpr int64_t kMostTokens = 1 << 20;

/// A token file, read by position; thread-safe.
class TokenFile {
 public:
  /// Reads the header. BadFile naming the file if it is no token file, of another version, damaged,
  /// or shorter or longer than its header says.
  explicit TokenFile(FileBytes bytes);

  const TokenHeader& header() const { return header_; }
  const std::string& name() const { return bytes_.name(); }
  int64_t size() const { return header_.count; }
  /// Reads tokens first, first + 1, ..., all of them within size(). BadFile for one beyond the
  /// vocabulary.
  void read(int64_t first, std::span<int32_t> out) const;
  /// Reads the whole file. BadFile if the checksum does not match.
  void verify() const;

 private:
  FileBytes bytes_;
  TokenHeader header_;
};

/// Writes a token file front to back; without close() it has no header and is invalid.
class TokenWriter {
 public:
  /// Uses all of `header` except count and checksum. IoError.
  TokenWriter(std::filesystem::path path, const TokenHeader& header);

  /// Appends tokens. CHECKs that they lie in the vocabulary.
  void write(std::span<const int32_t> tokens);
  int64_t count() const { return header_.count; }
  /// Completes the file as one of `shards`. IoError.
  void close(int64_t shards);

 private:
  void check();
  std::filesystem::path path_;
  TokenHeader header_;
  std::ofstream file_;
  std::vector<char> block_;
  ContentHash hash_;
};

/// Computes the header's own checksum from the beginning of a file, 64 bytes or more.
uint64_t token_header_sum(std::span<const uint8_t> file);

/// Returns 2 if tokens below `vocabulary` fit 16 bits, else 4.
constexpr uint32_t token_bytes_of(int64_t vocabulary) { return vocabulary <= 65536 ? 2 : 4; }

}  // namespace tutti::data
