#pragma once
// Copies a data set's files to a faster place before a run reads them.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tutti::data {

/// The list of copies, in their folder: a line per file, "XXHASH64 BYTES MTIME NAME", with the
/// original's modification time in nanoseconds. If a name comes twice, the later line counts.
inline constexpr const char* kStagedList = ".tutti-staged";

struct StagingSpec {
  std::filesystem::path from;                ///< the data set's folder
  std::vector<std::filesystem::path> files;  ///< files below that folder
  std::filesystem::path to;                  ///< folder of the copies, which keep their names
  /// Files of other nodes' shares: `to` gets links to the originals under their names, so that all
  /// nodes list the same files, and a node can read beyond its share.
  std::vector<std::filesystem::path> linked{};
  int threads = 4;  ///< files that this process copies at a time
  /// The number of processes that stage together into one folder, and the index of this one: files
  /// are dealt out by their sizes, so the numbers of files may differ.
  int share = 0, shares = 1;
};

struct StagingResult {
  int64_t files = 0, bytes = 0;                ///< this process's share
  int64_t copied_files = 0, copied_bytes = 0;  ///< copied now; the rest existed already
  int64_t linked_files = 0;                    ///< links made, by share 0
  double seconds = 0;
};

/// Copies the files that are not staged yet. A file counts as staged if the list has it with the
/// original's size and modification time, and the copy has that size. A copy gets its name when it
/// is whole and on the disk; until then it is NAME.part-RANDOM, which is removed on an error. So a
/// killed staging continues with the next file, and a second job copies nothing. ConfigError if a
/// file is not below `from` or the folders are the same. IoError naming the file if the original
/// cannot be read, ends early or changes meanwhile; if the disk has too little space for this
/// process's share, which is checked first; or if `to` belongs to another user or others can write
/// to it (base/own_file.h), since copies there may be forged. A new `to` is private to this user. A
/// link is made if there is no current copy of the original, and a later staging replaces it by a
/// copy.
StagingResult stage_files(const StagingSpec& spec);

/// IoError where the disk has too little space for the missing files of all shares together. Only
/// one of the processes that stage together calls it, before any of them begins: later it would
/// count files that the others have copied twice.
void check_staging_room(const StagingSpec& spec);

/// Reads the copies again and compares them with the list. IoError naming the first that differs.
/// Returns the bytes compared.
int64_t verify_staged(const StagingSpec& spec);

}  // namespace tutti::data
