#pragma once
// The file that describes a machine (docs/replay.md).

#include <filesystem>

#include "tutti/comm/cost/machine.h"

namespace tutti {

/// ConfigError with file and line for what it cannot be, IoError where it cannot be read.
comm::Machine read_machine(const std::filesystem::path& path);

}  // namespace tutti
