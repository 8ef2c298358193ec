#pragma once
// Checkpoints on disk. A checkpoint is a directory that is complete or absent, never half-written:
//
//   step_0000123/weights.safetensors  for any Python reader: parameters, running statistics
//   step_0000123/state.safetensors    for a resumed run only: optimizer state
//   step_0000123/ranks/3.safetensors  rank 3's own data (keep/rank_file.h): the statistics of
//                                     each replica, the state of compression
//   step_0000123/manifest.json        CheckpointInfo; size and XXH64 for the first two files and
//                                     for itself; the number of rank files and their common mark
//   latest                            a file: the name of the newest checkpoint
//   best                              a link to the checkpoint with the best evaluation; a file
//                                     with its name where the file system has no links
//
// Rank 0 writes it under a hidden name, flushes it to the disk and, after all ranks have written
// and flushed their files, renames it. Failures throw IoError naming the file; they leave all
// earlier checkpoints as they were. Only one process at a time writes into a directory of
// checkpoints; keep/run_folder.h ensures that.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/keep/named_tensor.h"
#include "tutti/keep/safetensors.h"

namespace tutti::keep {

/// A field that a network learns, as the data set describes it. It determines what the network's
/// predictions are; `tutti infer` needs it because its files have no labels.
struct LearnedField {
  std::string name;
  std::vector<int64_t> shape{};  ///< one sample's shape, before transforms
  int64_t classes = 0;           ///< 0: numbers, not class numbers

  std::string unit{};  ///< unit of its values in the data; empty: unknown
  std::map<std::string, std::vector<float>> statistics{};  ///< mean, std, min, max, as far as known
  bool operator==(const LearnedField&) const = default;
};

/// The state of the run, and the facts with which a resume must agree. A manifest holds all of it.
struct CheckpointInfo {
  int64_t step = 0;            ///< updates done
  int64_t epoch = 0;           ///< epochs completed
  int64_t epoch_position = 0;  ///< updates done in the current epoch
  uint64_t seed = 0;
  int64_t replicas = 1;
  int64_t ranks = 1;  ///< number of ranks that wrote it; a resume may have another number
  std::string precision;
  std::string plan_choices;  ///< the kernels chosen by measurement, in the plan's text format
  std::string config;        ///< the resolved configuration, TOML
  std::string run_id;        ///< id of the run that wrote it
  std::string optimizer;     ///< the update rule, "sgd"
  std::vector<std::string> state_kinds;  ///< the rule's states per parameter: "momentum"; "m", "v"
  std::map<std::string, std::string>
      settings;  ///< settings that a resume compares (train/settings/resume_check.h)
  std::map<std::string, double> metrics;
  std::vector<LearnedField>
      learned{};  ///< in the order of data.target; empty: written by an earlier version
};

/// Describes the files that each rank wrote for itself (keep/rank_file.h).
struct RankFiles {
  int64_t count = 0;    ///< one per rank; 0: none was needed
  std::string id = {};  ///< a mark that all of them share, unique to this checkpoint
};
inline constexpr const char* kRankFolder = "ranks";

struct CheckpointContent {
  CheckpointInfo info;
  std::vector<TensorRef> weights, state;
  bool best = false;  ///< it has the best evaluation so far
};

/// A checkpoint that is read tensor by tensor, so that a rank need not hold tensors it does not
/// keep.
struct Checkpoint {
  std::filesystem::path path;
  CheckpointInfo info;
  std::string checksum;  ///< checksum of the manifest, which holds the files' checksums
  SafetensorsFile weights, state;
  RankFiles rank_files = {};
};

/// Makes directory/step_NNNNNNN (replacing a checkpoint of the same step) under a hidden name.
/// Unless publish() gives it its final name, the destructor removes it.
class CheckpointWriter {
 public:
  /// `ranks` is the number of ranks that will write a file each; 0: none.
  CheckpointWriter(std::filesystem::path directory, const CheckpointInfo& info, int64_t ranks);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Returns the folder in which it is made, for write_rank_file().
  const std::filesystem::path& path() const;
  const RankFiles& rank_files() const;
  /// Writes the tensors that are the same on all ranks. Call once.
  void write(const std::vector<TensorRef>& weights, const std::vector<TensorRef>& state);
  /// Returns the size of the files that this object has written, in bytes.
  uint64_t bytes() const;
  /// Call it when all files are written. Verifies the files of write(), points `latest` at the
  /// checkpoint (and `best`, if `best` is true), and then removes the oldest checkpoints beyond
  /// `keep` (0: keeps all), but never the best one. Returns its path.
  std::filesystem::path publish(bool best, int keep);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Does all of that for a checkpoint without rank files.
std::filesystem::path write_checkpoint(const std::filesystem::path& directory,
                                       const CheckpointContent& content, int keep);

/// Prepares `directory` for a run that resumes from the checkpoint `from` of `step`; call it before
/// the run's record names the resume. Checkpoints of later steps belong to a course that the resume
/// leaves, so neither another resume nor `keep` may count them: they are renamed to
/// step_NNNNNNN.abandoned, keep their content, and `best` follows. If `from` itself has such a name
/// it gets its old one back, and the checkpoint that has that name now is set aside. Warns of each;
/// throws IoError if one cannot be renamed.
void set_aside_after(const std::filesystem::path& directory, const std::filesystem::path& from,
                     int64_t step);
/// Replaces `best` in one step: a reader sees the old or the new one. `best` is a link, or a file
/// with the name, like `latest`, where the file system has no links.
void mark_best(const std::filesystem::path& checkpoint);
/// Returns whether set_aside_after() has renamed it.
bool is_abandoned(const std::filesystem::path& checkpoint);

/// Checks the manifest, the checksums of the files that all ranks share, and that no rank's file is
/// missing; throws IoError saying what is damaged. The content of the ranks' files is left to the
/// ranks that resume from them (verify_rank_files), because one rank would have to read them all.
CheckpointInfo verify_checkpoint(const std::filesystem::path& checkpoint);
/// Checks a .safetensors file that lies in a checkpoint under a name that is not one of the
/// checkpoint's own: throws IoError unless its content is one that was written there. Files
/// elsewhere, and files beside other programs' manifests, may be anything; where a checkpoint has
/// lost its manifest, a warning says so.
void verify_file_of_checkpoint(const std::filesystem::path& file);
/// Opens it. Checks the manifest, and the sizes and headers of the files that all ranks share, but
/// not the content's checksums: verify_checkpoint() reads everything, and one rank does that for
/// all.
Checkpoint open_checkpoint(const std::filesystem::path& checkpoint);
/// Returns the checksum of a checkpoint's manifest: equal for equal checkpoints.
std::string manifest_checksum(const std::filesystem::path& checkpoint);
RankFiles rank_files_of(const std::filesystem::path& checkpoint);

/// Returns the checkpoint that `path` means. It is `path` itself if that is a checkpoint, valid or
/// not; the checkpoint that contains `path` for a path to weights; the checkpoint that `latest` or
/// `best` names; else, for a folder of checkpoints or a run's folder, the newest valid checkpoint
/// in it. Throws IoError naming `key` if there is none. Checkpoints in `except` are skipped like
/// damaged ones, unless `path` itself points at them.
std::filesystem::path checkpoint_at(const std::filesystem::path& path, std::string_view key,
                                    std::span<const std::filesystem::path> except = {});
/// Returns whether `path` is the file `latest` or `best`, or the weights file of a
/// checkpoint, whose manifest shows whether it is whole.
bool is_in_checkpoint(const std::filesystem::path& path);
/// Returns the checkpoint with the best evaluation in `directory`; nothing if none is marked, or,
/// with a warning, if it is damaged. Throws IntactFileError if it cannot be read and may be whole.
std::optional<std::filesystem::path> find_best(const std::filesystem::path& directory);
/// Returns the folder of checkpoints: `path` itself, or the one below it if `path` is a run's
/// folder.
std::filesystem::path checkpoints_in(const std::filesystem::path& path);

/// Removes half-written files of a killed process, and restores the name of a checkpoint that was
/// about to be replaced. Call it only with the folder's lock.
void remove_leftovers(const std::filesystem::path& directory);

/// Returns the newest checkpoint in `directory` that passes verification: one written after the one
/// that `latest` names, then that one, then the others from the last written to the first. Warns
/// about each damaged one; those in `except` are known to be damaged. Returns nothing if there is
/// none, or no such directory. Throws IntactFileError where one cannot be read and nothing shows
/// that it is damaged.
std::optional<std::filesystem::path> find_latest_valid(
    const std::filesystem::path& directory, std::span<const std::filesystem::path> except = {});

/// Returns the step of the checkpoint that was written last, valid or not; -1 if there is none.
/// This function and list_checkpoints() throw IntactFileError if the directory cannot be listed.
int64_t newest_step(const std::filesystem::path& directory);
/// Returns all checkpoints in a directory, valid or not, last written first; those with an
/// unreadable manifest come last.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& directory);

}  // namespace tutti::keep
