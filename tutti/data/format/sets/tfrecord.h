#pragma once
// Reads and writes TFRecord files: records one after the other, plain or all of them in one gzip
// file.
//   8 bytes  length, little-endian
//   4 bytes  masked CRC-32C of the length (trace/crc32c.h)
//   length   the record, often a tf.Example (tf_example.h)
//   4 bytes  masked CRC-32C of the record

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// Reads the records of a file in order. For one thread.
class TfRecordReader {
 public:
  /// Tells plain files from gzip by the first bytes. BadFile if the file is missing or neither.
  explicit TfRecordReader(const std::filesystem::path& path);
  ~TfRecordReader();
  TfRecordReader(TfRecordReader&&) noexcept;
  TfRecordReader& operator=(TfRecordReader&&) noexcept;

  /// Reads the next record and checks both checksums; false at the end of the file. BadFile naming
  /// the file, the record's number, what was expected and what was found.
  bool next(std::vector<uint8_t>& record);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The place of a record in a plain file.
struct TfRecordPlace {
  int64_t first = 0, bytes = 0;
};

/// Returns the places of all records of a plain file, for reading in any order; checks the lengths
/// and their checksums, not the records. BadFile, also for a gzip file, where records have no
/// places.
std::vector<TfRecordPlace> tfrecord_places(const FileBytes& file);

/// Says whether a file begins like TFRecords, plain or in gzip. IoError if it cannot be read.
bool is_tfrecord(const std::filesystem::path& path);

/// All records of a file, readable in any order.
struct TfRecordFile {
  FileBytes bytes;  ///< for a gzip file: the records, inflated and checked, joined
  std::vector<TfRecordPlace> places;
  bool inflated = false;

  /// Returns record `number` with its checksum checked: in `memory`, or in place if already in
  /// memory.
  std::span<const uint8_t> record(int64_t number, std::vector<uint8_t>& memory) const;
};
/// Reads the lengths of a plain file; inflates and checks a gzip file completely. BadFile.
TfRecordFile open_tfrecords(const std::filesystem::path& path);

/// Reads a record and checks its checksum. `number` is for messages. Any thread may call it.
void read_tfrecord(const FileBytes& file, const TfRecordPlace& place, int64_t number,
                   std::vector<uint8_t>& record);

/// Writes a file with these records. IoError naming the file.
void write_tfrecords(const std::filesystem::path& path,
                     std::span<const std::vector<uint8_t>> records, bool gzip = false);

}  // namespace tutti::data
