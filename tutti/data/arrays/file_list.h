#pragma once
// The files that a configuration names: files, folders and patterns.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// Whether array or TFRecord files commonly end so.
bool is_sample_file_name(std::string_view name);

/// What `entries` lead to, relative ones from `folder` on, in their order: a file; of a folder the
/// files that lie in it and end as array or TFRecord files do, by name; of a pattern (* ? [...] in
/// any part of the path, as in a shell) what fits, by name. Opens none of them. `key` is what holds
/// the entries, for messages. BadFile where one leads to nothing; ConfigError where there are none,
/// or one file comes twice.
std::vector<std::filesystem::path> listed_files(const std::vector<std::string>& entries,
                                                const std::filesystem::path& folder,
                                                std::string_view key);

}  // namespace tutti::data
