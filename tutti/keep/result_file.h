#pragma once
// Writes results to files that a user named: regular files, or anything else with that name.

#include <filesystem>
#include <optional>
#include <string_view>

namespace tutti::keep {

/// Makes or replaces the file: a reader sees the old content or the new one, never a part. Links
/// are followed and stay. A device or a pipe is written to, since a rename would replace it by a
/// file; so is an open descriptor (/dev/stdout, /dev/fd/N), after its earlier output. Throws
/// IoError.
void write_result_file(const std::filesystem::path& name, std::string_view text);
/// Returns the N of /dev/fd/N, a descriptor of this process, also for a link to one.
std::optional<int> descriptor_named(const std::filesystem::path& name);
/// Throws IoError if write_result_file() could not begin; to be called before work whose result
/// would be lost.
void check_result_file(const std::filesystem::path& name);

}  // namespace tutti::keep
