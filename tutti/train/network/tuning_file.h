#pragma once
// Stores measurements of a machine between runs: the next start need not measure, and uses the same
// kernels, hence gives the same bits. There is one text file per machine and build; see
// plan/choices.h.

#include <filesystem>

#include "tutti/plan/choices.h"

namespace tutti::train {

/// Reads the file. Returns nothing if it does not exist; a damaged file, and one of another kind,
/// is ignored with a warning.
plan::Choices read_tuning_file(const std::filesystem::path& path);
/// Replaces the whole file, unless it is of another kind; never throws: a read-only home directory
/// costs time, not the run.
void write_tuning_file(const std::filesystem::path& path, const plan::Choices& choices);

}  // namespace tutti::train
