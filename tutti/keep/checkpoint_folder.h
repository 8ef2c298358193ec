#pragma once
// A folder of checkpoints: its content, and changes of names in it that leave whole checkpoints
// under valid names, even if the process is killed at any moment. Private to checkpoint*.cpp.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::keep {

inline constexpr const char* kWeightsFile = "weights.safetensors";
inline constexpr const char* kStateFile = "state.safetensors";
inline constexpr const char* kManifest = "manifest.json";
inline constexpr const char* kLatest = "latest";
inline constexpr const char* kBest = "best";
/// The reason for a hidden name.
inline constexpr std::string_view kPartial = "partial", kRemoved = "removed",
                                  kReplaced = "replaced";

bool is_checkpoint_name(std::string_view name);
std::filesystem::path checkpoint_of_step(const std::filesystem::path& directory, int64_t step);
/// Returns a hidden name beside the checkpoint, a different one at every call; such a name is never
/// taken for a checkpoint.
std::filesystem::path hidden_name(const std::filesystem::path& checkpoint, std::string_view why);

/// Serial numbers for checkpoints whose own is not known. With a damaged manifest a checkpoint
/// counts as older than all others; otherwise the manifest cannot be read now, or only by a later
/// version.
inline constexpr int64_t kSerialDamaged = 0, kSerialUnknown = -1;
struct FoundCheckpoint {
  int64_t serial, step;
  std::filesystem::path path;
};
/// Returns all checkpoints in a directory, last written first; an unknown one stands before
/// those of earlier steps. Empty if there is no such directory; throws IntactFileError if it cannot
/// be listed.
std::vector<FoundCheckpoint> find_checkpoints(const std::filesystem::path& directory);

/// Renames `from` to `to`. If `to` exists, the two change places in one step, so that a complete
/// checkpoint is there at any moment.
void give_name(const std::filesystem::path& from, const std::filesystem::path& to);
/// Removes all but the newest `keep` checkpoints, which include the one just written, and the best
/// one. Unknown ones stay.
void prune_checkpoints(const std::filesystem::path& directory, int keep);

/// Returns the name that a file such as `latest` holds.
std::string name_in(const std::filesystem::path& file);
/// Returns the checkpoint that `best` names; empty if it names none.
std::filesystem::path best_of(const std::filesystem::path& directory);

}  // namespace tutti::keep
