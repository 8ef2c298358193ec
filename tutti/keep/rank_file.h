#pragma once
// Each rank's own part of a checkpoint: a file, ranks/3.safetensors, written and read by that rank,
// so that nothing of it is gathered:
//
//   replicas/NAME            the batch-norm statistics of its replicas, one row each: [rows, ...]
//   compression.rank3. ...   values that compression has not sent yet (comm/compress/state.h)
//
// The file names its checkpoint, its rank and the number of ranks, and has a checksum of its own,
// so the manifest need not list them all. A resume on any number of ranks finds a replica's row by
// its index: ReplicaMap gives the rank that had it.

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

namespace tutti::keep {

std::filesystem::path rank_file_path(const std::filesystem::path& checkpoint, int64_t rank);

/// Writes the file of `rank`, waits for the disk, and verifies it. Returns its size in bytes. All
/// tensors must be f32. `checkpoint` is the folder that CheckpointWriter makes.
uint64_t write_rank_file(const std::filesystem::path& checkpoint, const RankFiles& files,
                         int64_t rank, std::span<const TensorRef> tensors);
/// Opens the file; checks that it belongs to this checkpoint, but not its content. Throws IoError.
SafetensorsFile open_rank_file(const std::filesystem::path& checkpoint, const RankFiles& files,
                               int64_t rank);
/// Reads all of it, block by block. Throws IoError saying what is damaged.
void verify_rank_file(const std::filesystem::path& checkpoint, const RankFiles& files,
                      int64_t rank);
/// Verifies rank `rank`'s share for a resume on `ranks` ranks: each of the files rank, rank +
/// ranks, ...
void verify_rank_files(const std::filesystem::path& checkpoint, const RankFiles& files, int rank,
                       int ranks);

/// The files of a checkpoint by rank, opened on demand. For a checkpoint from before there were
/// such files, the state file serves as each rank's file. Not thread-safe.
class RankFileReader {
 public:
  /// The checkpoint must outlive this object.
  explicit RankFileReader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  int ranks() const;
  const SafetensorsFile& file(int rank);

 private:
  static constexpr size_t kMostOpen = 64;  // a process may have 1024 files open
  const Checkpoint& checkpoint_;
  std::map<int, SafetensorsFile> open_;
};

/// Reads the compression state from these files.
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

/// The state of compression for one bucket on this rank.
struct UnsentBucket {
  const exchange::Bucket* bucket = nullptr;
  comm::StateLayout layout;
  std::span<float> state;
};
/// Returns the buckets' state as tensors of this rank's file, without copying it.
std::vector<TensorRef> unsent_tensors(int rank, std::span<const UnsentBucket> buckets);
/// Collective. Restores the state that unsent_tensors() saved. Warns where it has to be
/// redistributed.
void restore_unsent(comm::Communicator& communicator, comm::SavedState& saved,
                    std::span<const UnsentBucket> buckets);

}  // namespace tutti::keep
