#pragma once
// Files that a user named to put results into: regular files, or whatever else has the name.

#include <filesystem>
#include <optional>
#include <string_view>

namespace tutti {

/// Replaces or makes the file: a reader sees the old content or the new one, never a part. Links
/// are followed and stay. A device or a pipe is written into, since a rename would put a file in
/// its place; so is an open descriptor (/dev/stdout, /dev/fd/N), after what was written there
/// before. Throws IoError.
void write_result_file(const std::filesystem::path& name, std::string_view text);
/// The N of /dev/fd/N, which is a descriptor of this process; also of a link to one.
std::optional<int> descriptor_named(const std::filesystem::path& name);
/// Throws IoError where write_result_file() could not begin: before work whose result would be
/// lost.
void check_result_file(const std::filesystem::path& name);

}  // namespace tutti
