#pragma once
// The folder of a run. A folder holds one run: a new one does not begin where another lies, and two
// never write at once. docs/runs.md describes this to users.

#include <filesystem>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/folder_lock.h"
#include "tutti/comm/communicator.h"
#include "tutti/config/config.h"

namespace tutti::keep {

/// The name of the configuration in a run's folder. It does not name the folder: moved, copied or
/// set aside, the file still belongs to the run beside it.
inline constexpr const char* kConfigFile = "config.toml";

/// Throws IoError that an output folder cannot be made, with the reason; checks whether the working
/// folder exists.
[[noreturn]] void refuse_output_folder(const std::filesystem::path& folder,
                                       const std::string& reason);

/// The run's folders and the checkpoint that it continues; the same on every rank.
struct RunPlace {
  std::string directory;    ///< run.output_dir, or the folder chosen for it
  std::string checkpoints;  ///< the folder of its checkpoints
  std::string resume{};     ///< the verified checkpoint to resume from; empty: none
  std::string checksum{};   ///< checksum of that checkpoint's manifest
  std::string run_id;       ///< unique to each run, kept over its resumes
  bool goes_on = false;     ///< the folder holds the start of this run, whose record is continued

  bool operator==(const RunPlace&) const = default;
};

/// The user's request for a run's folder.
struct RunFolderRequest {
  std::string output_dir{};   ///< run.output_dir; empty: the next free one of runs/0001, ...
  std::string checkpoints{};  ///< checkpoint.dir; empty: output_dir/checkpoints
  std::string resume{};       ///< checkpoint.resume
  bool fresh = false;         ///< an existing run is set aside as NAME.1, NAME.2, ...
  std::string base = "runs";  ///< folder that holds numbered folders
  double patience = 10;       ///< seconds that a resume waits for the previous run to end
};

RunFolderRequest run_folder_request(const config::RunConfig& config, bool fresh);

/// Returns the folder of the run whose config.toml `file` is; empty if it belongs to no run.
std::string folder_of_config(const std::filesystem::path& file);

/// Returns checkpoint.dir as that file holds it: a folder within the run's folder moves with it.
std::string own_checkpoints(const std::string& dir, const RunPlace& place);

/// Removes locks from folders that hold nothing else, and such folders if they are numbered ones.
/// Call it with the locks held.
void remove_unused(const RunPlace& place);

/// Held by every rank during training; rank 0 holds the locks.
class RunFolder {
 public:
  /// Collective. Rank 0 finds, locks, cleans and, for a resume, verifies the files that all ranks
  /// share; each rank verifies its share of the ranks' files; all ranks get the place. Throws
  /// ConfigError where another run exists or is running, and where there are checkpoints to resume
  /// from but none is valid.
  RunFolder(comm::Communicator& communicator, const RunFolderRequest& request);
  /// A run that was refused before its first step leaves nothing behind.
  ~RunFolder() {
    if (!locks_.empty()) remove_unused(place_);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const RunPlace& place() const { return place_; }

 private:
  std::vector<FolderLock> locks_;  // before place_: taken while place_ is determined
  RunPlace place_;
};

/// Thrown if a run exists in the folder where another is to begin.
class HoldsRun : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Returns the place that a run would have and the checkpoint it would continue, or throws the
/// reason for a refusal (HoldsRun). Takes no lock, and makes, renames or removes nothing.
RunPlace preview_run_folder(const RunFolderRequest& request);

/// Throws ConfigError in two cases. The newest checkpoint in place.checkpoints is of another run
/// than the one in place.directory. Or there is none (place.resume is empty), although the
/// record of that run names one: its disk may be absent, and a new run would take the place of the
/// old one.
void check_whose_checkpoint(const RunPlace& place);

/// Does rank 0's part and stores the locks that it took.
RunPlace take_run_folder(const RunFolderRequest& request, std::vector<FolderLock>& locks);

/// Takes the lock of a run's folder, or of a folder of checkpoints elsewhere.
FolderLock lock_run(const std::filesystem::path& folder, double patience);

/// Returns whether a record or a checkpoint exists there.
bool holds_run(const std::filesystem::path& directory, const std::filesystem::path& checkpoints);

}  // namespace tutti::keep
