#pragma once
// What measurement has found out about a machine, kept between runs: the next start need not
// measure, and takes the same kernels, hence the same bits. One text file a machine and build; see
// plan/choices.h.

#include <filesystem>

#include "tutti/plan/choices.h"

namespace tutti {

/// Empty if there is no such file; a damaged one, and a file of another kind, is passed over with a
/// warning.
Choices read_tuning_file(const std::filesystem::path& path);
/// Replaces the file as a whole, but none of another kind; never throws: a read-only home directory
/// costs time, not the run.
void write_tuning_file(const std::filesystem::path& path, const Choices& choices);

}  // namespace tutti
