#pragma once
// What each rank alone keeps, in a checkpoint: a file of its own, ranks/3.safetensors, written and
// read by that rank, so that nothing of it is gathered:
//
//   replicas/NAME            the batch-norm statistics of its replicas, one row each: [rows, ...]
//   compression.rank3. ...   what compression has not sent yet (comm/compress/state.h)
//
// The file says of which checkpoint it is, of which rank and of how many, and has a checksum of its
// own, so the manifest need not list them all. A resume on any number of ranks finds a replica's
// row by its index: ReplicaMap says which rank had it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/compress/state.h"
#include "tutti/exchange/bucket.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/named_tensor.h"
#include "tutti/keep/safetensors.h"

namespace tutti {

std::filesystem::path rank_file_path(const std::filesystem::path& checkpoint, int64_t rank);

/// Writes the one of `rank`, waits for the disk, and verifies it. Returns its size in bytes. All
/// tensors f32. `checkpoint`: where CheckpointWriter makes it.
uint64_t write_rank_file(const std::filesystem::path& checkpoint, const RankFiles& files,
                         int64_t rank, std::span<const TensorRef> tensors);
/// Opens it; checks that it is this checkpoint's, but not its content. Throws IoError.
SafetensorsFile open_rank_file(const std::filesystem::path& checkpoint, const RankFiles& files,
                               int64_t rank);
/// Reads all of it, block by block. Throws IoError saying what is damaged.
void verify_rank_file(const std::filesystem::path& checkpoint, const RankFiles& files,
                      int64_t rank);
/// Those that rank `rank` of `ranks` verifies for a resume: its own, or of the files rank, rank +
/// ranks, ... each.
void verify_rank_files(const std::filesystem::path& checkpoint, const RankFiles& files, int rank,
                       int ranks);

/// The files of a checkpoint by rank, opened when they are asked for. Of a checkpoint from before
/// there were such files, the state file is that of each rank. Not thread-safe.
class RankFileReader {
 public:
  /// The checkpoint outlives it.
  explicit RankFileReader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  int ranks() const;
  const SafetensorsFile& file(int rank);

 private:
  static constexpr size_t kMostOpen = 64;  // a process may have open 1024 files
  const Checkpoint& checkpoint_;
  std::map<int, SafetensorsFile> open_;
};

/// The compression state in them.
class SavedCompression final : public comm::SavedState {
 public:
  explicit SavedCompression(const Checkpoint& checkpoint) : files_(checkpoint) {}
  int ranks() const override { return files_.ranks(); }
  std::vector<std::string> names(int rank) override;
  size_t floats(int rank, const std::string& name) override;
  std::vector<float> read(int rank, const std::string& name) override;

 private:
  RankFileReader files_;
};

/// What compression keeps of one bucket on this rank.
struct UnsentBucket {
  const Bucket* bucket = nullptr;
  comm::StateLayout layout;
  std::span<float> state;
};
/// As tensors of this rank's file, where they lie.
std::vector<TensorRef> unsent_tensors(int rank, std::span<const UnsentBucket> buckets);
/// Collective. The reverse. Warns where it is dealt out anew.
void restore_unsent(comm::Communicator& communicator, comm::SavedState& saved,
                    std::span<const UnsentBucket> buckets);

}  // namespace tutti
