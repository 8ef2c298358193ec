#pragma once
// Checkpoints on disk. A checkpoint is a directory, complete or absent, never half-written:
//   step_0000123/weights.safetensors   what a Python reader wants: parameters and running
//                                      statistics
//   step_0000123/state.safetensors     what only a resumed run needs: optimizer state, statistics
//                                      of each replica
//   step_0000123/manifest.json         CheckpointInfo, and size and XXH64 of the two files and of
//                                      itself
//   latest                             the name of the newest one
// It is written under a hidden name, flushed to the disk and renamed. Failures throw IoError naming
// the file; they leave all earlier checkpoints as they were. One process at a time writes into a
// directory of checkpoints.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/train/named_tensor.h"

namespace tutti {

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
  std::map<std::string, double> metrics;
};

struct CheckpointContent {
  CheckpointInfo info;
  std::vector<TensorRef> weights, state;
};

struct Checkpoint {
  std::filesystem::path path;
  CheckpointInfo info;
  std::vector<NamedTensor> weights, state;
};

/// Writes directory/step_NNNNNNN (replacing one of the same step), points `latest` at it and then
/// removes the oldest ones beyond `keep` (0: keeps all). Returns its path.
std::filesystem::path write_checkpoint(const std::filesystem::path& directory,
                                       const CheckpointContent& content, int keep);

/// Checks the manifest and the checksums of all files; throws IoError saying what is damaged.
CheckpointInfo verify_checkpoint(const std::filesystem::path& checkpoint);
/// Verifies and reads everything.
Checkpoint read_checkpoint(const std::filesystem::path& checkpoint);

/// The newest checkpoint in `directory` that passes verification: the one `latest` names, else the
/// others from the last written to the first. Warns about each damaged one. Nothing if there is
/// none, or no such directory.
std::optional<std::filesystem::path> find_latest_valid(const std::filesystem::path& directory);

/// All checkpoints in a directory, valid or not, last written first; those with an unreadable
/// manifest come last.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& directory);

}  // namespace tutti
