#pragma once
// Reads the file that describes a machine (docs/replay.md).

#include <filesystem>

#include "tutti/comm/cost/machine.h"

namespace tutti::cli {

/// Throws ConfigError with file and line for an invalid description, IoError where the file cannot
/// be read.
comm::Machine read_machine(const std::filesystem::path& path);

}  // namespace tutti::cli
