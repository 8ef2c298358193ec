#pragma once
// Reads and writes Tutti's lattices file, little-endian:
//   offset  bytes  field
//        0      8  magic "TUTTILAT"
//        8      4  version, 1
//       12      4  bytes of this header, 64
//       16      8  seed
//       24      8  index of the first image
//       32      8  number of images
//       40      4  height, 64
//       44      4  width, 64
//       48      4  classes, 5
//       52      4  zero
//       56      8  XXH64 (seed 0) of everything after the header
//       64         records: 1 label byte, height * width bytes of pixels in rows

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "tutti/data/file/file_bytes.h"
#include "tutti/data/format/sets/lattices.h"
#include "tutti/data/format/sets/stored_images.h"

namespace tutti::data {

/// Writes a file under a temporary name beside it and renames it when complete, so a reader never
/// sees half a file.
class LatticesWriter {
 public:
  /// IoError if the directory cannot be written.
  LatticesWriter(std::filesystem::path path, const LatticeSpec& spec);
  /// Removes the unfinished file.
  ~LatticesWriter();
  LatticesWriter(const LatticesWriter&) = delete;
  LatticesWriter& operator=(const LatticesWriter&) = delete;

  /// Appends whole records. IoError when the disk is full.
  void append(std::span<const uint8_t> records);
  /// Writes the header, flushes to the disk and renames. CHECKs that spec.count records were
  /// appended.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads and checks a file, including the checksum; header and size come first. BadFile naming the
/// file, what was expected and what was found.
std::unique_ptr<StoredImages> open_lattices_file(const std::filesystem::path& path,
                                                 const ClassLimit& limit = {});

/// Reads the header; checks everything except the checksum and labels.
LatticeSpec read_lattices_header(const std::filesystem::path& path);

/// Makes a set from records in memory.
std::unique_ptr<StoredImages> lattices_from_records(std::vector<uint8_t> records,
                                                    const ClassLimit& limit);

}  // namespace tutti::data
