#pragma once
// A folder of checkpoints: what stands in it, and how names in it change so that a kill at any
// moment leaves whole checkpoints under valid names. Private to checkpoint*.cpp.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

inline constexpr const char* kWeightsFile = "weights.safetensors";
inline constexpr const char* kStateFile = "state.safetensors";
inline constexpr const char* kManifest = "manifest.json";
inline constexpr const char* kLatest = "latest";
inline constexpr const char* kBest = "best";
/// Why a hidden name was given.
inline constexpr std::string_view kPartial = "partial", kRemoved = "removed",
                                  kReplaced = "replaced";

bool is_checkpoint_name(std::string_view name);
std::filesystem::path checkpoint_of_step(const std::filesystem::path& directory, int64_t step);
/// Beside the checkpoint; nobody takes what has such a name for one. Another one at every call.
std::filesystem::path hidden_name(const std::filesystem::path& checkpoint, std::string_view why);

/// Serial numbers of checkpoints that do not tell theirs: the manifest is damaged, which makes one
/// older than all others, or it cannot be read now, or only by a later version.
inline constexpr int64_t kSerialDamaged = 0, kSerialUnknown = -1;
struct FoundCheckpoint {
  int64_t serial, step;
  std::filesystem::path path;
};
/// All checkpoints in a directory, last written first, an unknown one before those of earlier
/// steps. Empty if there is no such directory; throws IntactFileError if it cannot be listed.
std::vector<FoundCheckpoint> find_checkpoints(const std::filesystem::path& directory);

/// Renames `from` to `to`. If `to` exists the two change places in one step, so that a complete
/// checkpoint is there at any moment.
void give_name(const std::filesystem::path& from, const std::filesystem::path& to);
/// Removes all but the newest `keep` ones, the one just written among them, and the best one.
/// Unknown ones stay.
void prune_checkpoints(const std::filesystem::path& directory, int keep);

/// The name that a file such as `latest` holds.
std::string name_in(const std::filesystem::path& file);
/// The checkpoint that `best` names; empty if it names none.
std::filesystem::path best_of(const std::filesystem::path& directory);

}  // namespace tutti
