#pragma once
// Checkpoints on disk. A checkpoint is a directory, complete or absent, never half-written:
//
//   step_0000123/weights.safetensors  what a Python reader wants: parameters, running statistics
//   step_0000123/state.safetensors    what only a resumed run needs: optimizer state
//   step_0000123/ranks/3.safetensors  what only rank 3 has (keep/rank_file.h): statistics of each
//                                     of its replicas, what compression keeps
//   step_0000123/manifest.json        CheckpointInfo; size and XXH64 of the first two files and of
//                                     itself; the number of rank files and their common mark
//   latest                            a file: the name of the newest one
//   best                              a link to the one of the best evaluation; a file with its
//                                     name where the file system has no links
//
// It is written under a hidden name, flushed to the disk and renamed: by rank 0, after all ranks
// have written and flushed theirs. Failures throw IoError naming
// the file; they leave all earlier checkpoints as they were. One process at a time writes into a
// directory of checkpoints (keep/run_folder.h sees to that).

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

namespace tutti {

/// A field that a network learns, as the data set has it. What its predictions are follows from it:
/// what `tutti infer` needs, whose files have no labels.
struct LearnedField {
  std::string name;
  std::vector<int64_t> shape{};  ///< of one sample, before transforms
  int64_t classes = 0;           ///< 0: numbers, and not class numbers

  std::string unit{};  ///< of its values in the data; empty: not known
  std::map<std::string, std::vector<float>> statistics{};  ///< mean, std, min, max, as far as known
  bool operator==(const LearnedField&) const = default;
};

/// Where the run stood, and what a resume must agree with. A manifest holds all of it.
struct CheckpointInfo {
  int64_t step = 0;            ///< updates done
  int64_t epoch = 0;           ///< epochs completed
  int64_t epoch_position = 0;  ///< updates done in the epoch under way
  uint64_t seed = 0;
  int64_t replicas = 1;
  int64_t ranks = 1;  ///< that wrote it; a resume may have another number
  std::string precision;
  std::string plan_choices;  ///< the kernels chosen by measurement, as the plan's own text
  std::string config;        ///< the resolved configuration, TOML
  std::string run_id;        ///< of the run that wrote it
  std::string optimizer;     ///< the update rule, "sgd"
  std::vector<std::string> state_kinds;  ///< its states of a parameter: "momentum"; "m", "v"
  std::map<std::string, std::string>
      settings;  ///< what a resume compares (train/settings/resume_check.h)
  std::map<std::string, double> metrics;
  std::vector<LearnedField>
      learned{};  ///< in the order of data.target; empty: an earlier version's
};

/// The files that ranks have written each for itself (keep/rank_file.h).
struct RankFiles {
  int64_t count = 0;    ///< one a rank; 0: none was needed
  std::string id = {};  ///< a mark that they share, and no other checkpoint has
};
inline constexpr const char* kRankFolder = "ranks";

struct CheckpointContent {
  CheckpointInfo info;
  std::vector<TensorRef> weights, state;
  bool best = false;  ///< of the best evaluation so far
};

/// A checkpoint to read tensor by tensor, so that a rank need not hold what it does not keep.
struct Checkpoint {
  std::filesystem::path path;
  CheckpointInfo info;
  std::string checksum;  ///< of the manifest, which holds those of the files
  SafetensorsFile weights, state;
  RankFiles rank_files = {};
};

/// Makes directory/step_NNNNNNN (replacing one of the same step) under a hidden name, which goes
/// with this unless publish() gave it its own.
class CheckpointWriter {
 public:
  /// `ranks`: that will write a file each; 0: none.
  CheckpointWriter(std::filesystem::path directory, const CheckpointInfo& info, int64_t ranks);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Where it is made, for write_rank_file().
  const std::filesystem::path& path() const;
  const RankFiles& rank_files() const;
  /// What all ranks have alike. Once.
  void write(const CheckpointContent& content);
  /// Bytes of the files that this has written.
  uint64_t bytes() const;
  /// When all files are there: verifies those of write(), points `latest`, and for the best one
  /// `best`, at it, and then removes the oldest ones beyond `keep` (0: keeps all), but never the
  /// best one. Returns its path.
  std::filesystem::path publish(bool best, int keep);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// All of that, for a checkpoint without rank files.
std::filesystem::path write_checkpoint(const std::filesystem::path& directory,
                                       const CheckpointContent& content, int keep);

/// For a run that goes on from the checkpoint `from`, of `step`, before its record says so: gives
/// those of later steps the name step_NNNNNNN.abandoned. They are of a course that the resume has
/// left, so neither another resume nor `keep` may take them for this one's; what they hold is kept,
/// and `best` follows. If `from` has such a name itself it gets its old one back, and the one that
/// has it now is set aside. Warns of each; throws IoError if one cannot be renamed.
void set_aside_after(const std::filesystem::path& directory, const std::filesystem::path& from,
                     int64_t step);
/// Replaces `best` in one step: a reader sees the old one or the new one. A link, or, where the
/// file system has none, a file with the name, as `latest` is.
void mark_best(const std::filesystem::path& checkpoint);
/// Whether set_aside_after() has named it.
bool is_abandoned(const std::filesystem::path& checkpoint);

/// Checks the manifest, the checksums of the files that all ranks have alike, and that no rank's
/// file is missing; throws IoError saying what is damaged. Whether the ranks' files are whole, the
/// ranks look that go on from them (verify_rank_files), because one would have to read them all.
CheckpointInfo verify_checkpoint(const std::filesystem::path& checkpoint);
/// Of a .safetensors file that lies in a checkpoint under another name than its files have: throws
/// IoError unless it is what was written there. Files elsewhere, and beside manifests of other
/// programs, may be anything; where a checkpoint has lost its manifest, a warning says so.
void verify_file_of_checkpoint(const std::filesystem::path& file);
/// Opens it. Checks the manifest, the sizes of the files that all ranks have alike and their
/// headers, but not the content's checksums: verify_checkpoint() reads all of these, which one rank
/// does for all.
Checkpoint open_checkpoint(const std::filesystem::path& checkpoint);
/// The checksum of a checkpoint's manifest: equal for equal checkpoints.
std::string manifest_checksum(const std::filesystem::path& checkpoint);
RankFiles rank_files_of(const std::filesystem::path& checkpoint);

/// `path` if it is a checkpoint, valid or not; the checkpoint of a path to its weights, and the one
/// that a path to `latest` or `best` names; else the newest valid one in it, where it is a folder
/// of checkpoints or the folder of a run. Throws IoError naming `key` if there is none. Checkpoints
/// in `except` are passed over like damaged ones, but for the first two cases.
std::filesystem::path checkpoint_at(const std::filesystem::path& path, std::string_view key,
                                    std::span<const std::filesystem::path> except = {});
/// Whether `path` is the file `latest` or `best`, or the weights of a checkpoint, whose manifest
/// can tell whether they are whole.
bool is_in_checkpoint(const std::filesystem::path& path);
/// The checkpoint of the best evaluation in `directory`; nothing if none is marked or it is
/// damaged, which is warned of. Throws IntactFileError if it cannot be read and may be whole.
std::optional<std::filesystem::path> find_best(const std::filesystem::path& directory);
/// The folder of checkpoints that `path` is, or has below it as a run's folder does.
std::filesystem::path checkpoints_in(const std::filesystem::path& path);

/// Removes what a killed process left half-written, and gives a checkpoint back its name that it
/// was about to replace. Only for whoever holds the folder's lock.
void remove_leftovers(const std::filesystem::path& directory);

/// The newest checkpoint in `directory` that passes verification: one that was written after the
/// one that `latest` names, that one, else the others from the last written to the first. Warns
/// about each damaged one; those in `except` have been found damaged already. Nothing if there is
/// none, or no such directory. Throws IntactFileError where one cannot be read and nothing says
/// that it is damaged.
std::optional<std::filesystem::path> find_latest_valid(
    const std::filesystem::path& directory, std::span<const std::filesystem::path> except = {});

/// The step of the one that was written last, valid or not; -1 where there is none. This and the
/// list throw IntactFileError if the directory cannot be listed.
int64_t newest_step(const std::filesystem::path& directory);
/// All checkpoints in a directory, valid or not, last written first; those with an unreadable
/// manifest come last.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& directory);

}  // namespace tutti
