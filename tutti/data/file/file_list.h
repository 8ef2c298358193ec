#pragma once
// Finds the files that a configuration names: files, folders and patterns.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// Says whether the name has a usual ending of array or TFRecord files, or a number, as in
/// "train-00000-of-00002" or "x.tfrecord-00000-of-00002.gz".
bool is_sample_file_name(std::string_view name);

/// A name of the form "STEM-I-of-N", with or without an ending after it.
struct NumberedName {
  std::string before{}, between{}, after{};  ///< before I; "-of-N"; the ending
  size_t digits = 0;                         ///< digits of I
  int64_t number = 0, count = 0;
  std::string of(int64_t number) const;  ///< the name with another number
};
std::optional<NumberedName> numbered_name(std::string_view name);

/// Finds incomplete copies: for files with such names, the names of the same folder and set that
/// are neither in `files` nor on disk. Returns at most a few, in order.
std::vector<std::filesystem::path> missing_parts(const std::vector<std::filesystem::path>& files);

/// Returns the files that `entries` lead to, in their order; relative entries start at `folder`. An
/// entry is a file; a folder, for the files in it that end as array or TFRecord files do, by name;
/// or a pattern (* ? [...] in any part, as in a shell; `folder` is taken literally), for all
/// matches, by name. Opens none of them. Logs where a folder or pattern leads to only some files of
/// a numbered set. `key` is what holds the entries, for messages. BadFile where an entry leads to
/// nothing; ConfigError where there are no entries, or one file comes twice.
std::vector<std::filesystem::path> listed_files(const std::vector<std::string>& entries,
                                                const std::filesystem::path& folder,
                                                std::string_view key);

}  // namespace tutti::data
