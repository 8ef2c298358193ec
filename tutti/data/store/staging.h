#pragma once
// Staging: a data set's files copied to a faster place before a run reads them.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tutti::data {

/// Lists what was copied, in the folder that the copies lie in: a line a file, "XXHASH64 BYTES
/// MTIME NAME", the modification time of the original in nanoseconds. A later line of a name
/// counts.
inline constexpr const char* kStagedList = ".tutti-staged";

struct StagingSpec {
  std::filesystem::path from;                ///< the data set's folder
  std::vector<std::filesystem::path> files;  ///< below it
  std::filesystem::path to;                  ///< gets them under the same names
  /// Files of other nodes' shares: `to` gets links to the originals under their names, so that all
  /// nodes list the same files, and what a node reads beyond its share is there.
  std::vector<std::filesystem::path> linked{};
  int threads = 4;  ///< files copied at a time by this process
  /// The processes that stage together into one folder, and which one this is: files are dealt out
  /// by their sizes, so their numbers may differ.
  int share = 0, shares = 1;
};

struct StagingResult {
  int64_t files = 0, bytes = 0;                ///< of this process's share
  int64_t copied_files = 0, copied_bytes = 0;  ///< of them; the others were there already
  int64_t linked_files = 0;                    ///< made by share 0
  double seconds = 0;
};

/// Copies what is not there yet. A file counts as there when the list has it with the original's
/// size and modification time, and the copy has that size. A copy gets its name when it is whole
/// and on the disk; until then it is NAME.part-RANDOM, which an error takes away. So what was
/// killed goes on with the next file, and a second job copies nothing. ConfigError where a file is
/// not below `from` or the folders are one; IoError naming the file where the original cannot be
/// read, ends early or changes meanwhile, or the disk has too little space for this process's
/// share, which is looked at before the first byte, or where `to` belongs to another user or others
/// can write to it (base/own_file.h): copies there may be somebody else's. A new `to` is made for
/// this user alone. A link is made where there is no copy of the original as it is now, and gives
/// way to one that a later staging makes.
StagingResult stage_files(const StagingSpec& spec);

/// IoError where the disk has too little space for what is not there yet of all shares together.
/// For one of the processes that stage together, before any of them begins: later what the others
/// have copied so far would count twice.
void check_staging_room(const StagingSpec& spec);

/// Reads the copies again and compares them with the list. IoError naming the first that differs.
/// Returns how many bytes.
int64_t verify_staged(const StagingSpec& spec);

}  // namespace tutti::data
