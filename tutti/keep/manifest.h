#pragma once
// manifest.json of a checkpoint: CheckpointInfo and the digests of the checkpoint's files,
// protected by a checksum of its own.

#include <filesystem>
#include <map>
#include <string>

#include "tutti/base/error.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/durable_file.h"

namespace tutti::keep {

struct Manifest {
  CheckpointInfo info;
  int64_t serial = 1;  ///< counts the checkpoints ever written into a directory: their order,
                       ///< independent of steps and clocks
  std::map<std::string, FileDigest> files;
  RankFiles rank_files = {};
  std::string checksum = {};  ///< checksum of everything above; read_manifest() fills it
};

std::string to_json(const Manifest& manifest);
/// Throws IoError naming the file if it is missing or damaged, IntactFileError if the system
/// refuses to read it or it has a later schema.
Manifest read_manifest(const std::filesystem::path& path);

}  // namespace tutti::keep
