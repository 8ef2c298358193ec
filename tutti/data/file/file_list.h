#pragma once
// The files that a configuration names: files, folders and patterns.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// Whether array or TFRecord files commonly end so, or have a number, as "train-00000-of-00002" or
/// "x.tfrecord-00000-of-00002.gz".
bool is_sample_file_name(std::string_view name);

/// A name of the form "STEM-I-of-N" with another ending behind it or none.
struct NumberedName {
  std::string before{}, between{}, after{};  ///< before I; "-of-N"; the ending
  size_t digits = 0;                         ///< of I
  int64_t number = 0, count = 0;
  std::string of(int64_t number) const;  ///< the name with another number
};
std::optional<NumberedName> numbered_name(std::string_view name);

/// Finds, for files with such names, those of the same folder and set that are not among them and
/// that no file has: an incomplete copy. At most a few, in order.
std::vector<std::filesystem::path> missing_parts(const std::vector<std::filesystem::path>& files);

/// What `entries` lead to, relative ones from `folder` on, in their order: a file; of a folder the
/// files that lie in it and end as array or TFRecord files do, by name; of a pattern (* ? [...] in
/// any part of the entry, as in a shell; `folder` is a name) what fits, by name. Opens none of
/// them. The log says where folders and patterns lead to some files of a numbered set and others
/// are not there. `key` is what holds
/// the entries, for messages. BadFile where one leads to nothing; ConfigError where there are none,
/// or one file comes twice.
std::vector<std::filesystem::path> listed_files(const std::vector<std::string>& entries,
                                                const std::filesystem::path& folder,
                                                std::string_view key);

}  // namespace tutti::data
