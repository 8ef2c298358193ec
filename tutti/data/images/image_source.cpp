// Finds the images of a part: a folder of class folders, or archives.

#include <algorithm>
#include <cctype>
#include <charconv>

#include "tutti/data/file/folder_walk.h"
#include "tutti/data/images/image_places.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> part_names(std::string_view part) {
  if (part == "validation") return {"validation", "val", "valid"};
  return {part};
}

std::vector<fs::path> archives_in(const fs::path& folder) {
  std::vector<fs::path> archives;
  std::error_code unknown;
  for (const fs::directory_entry& entry : folder_entries(folder))
    if (entry.path().extension() == ".tar" && !entry.is_directory(unknown))
      archives.push_back(entry.path());
  return archives;
}

/// Says whether a file's name has the part as a word: "imagenet-train-000012.tar", "img_val.tar".
bool says_part(const fs::path& file, std::string_view part) {
  const std::string stem = file.stem().string();
  const auto is_letter = [&](size_t at) {
    return at < stem.size() && std::isalpha(static_cast<unsigned char>(stem[at])) != 0;
  };
  for (const std::string_view name : part_names(part))
    for (size_t at = stem.find(name); at != stem.npos; at = stem.find(name, at + 1))
      if (!(at > 0 && is_letter(at - 1)) && !is_letter(at + name.size())) return true;
  return false;
}

bool says_any_part(const fs::path& file) {
  return says_part(file, "train") || says_part(file, "validation") || says_part(file, "test");
}

/// Splits a name into text and the number at its end; "x-0003-of-0012" is number 3 of "x-".
struct ShardName {
  std::string_view text;
  bool numbered = false;
  int64_t number = -1;  ///< negative also if beyond 2^63
};
ShardName shard_name(std::string_view stem) {
  const auto digits_at = [](std::string_view name) {
    return name.find_last_not_of("0123456789") + 1;  // npos + 1 == 0
  };
  size_t at = digits_at(stem);
  for (const std::string_view of : {"-of-", "_of_"})
    if (at < stem.size() && stem.substr(0, at).ends_with(of)) {
      stem = stem.substr(0, at - of.size());
      at = digits_at(stem);
    }
  ShardName name{.text = stem.substr(0, at), .numbered = at < stem.size()};
  std::from_chars(stem.data() + at, stem.data() + stem.size(), name.number);
  return name;
}

/// Matches "part_a", "part-00001-3f2a", "shardB".
bool says_shard(std::string_view stem) {
  return stem.starts_with("shard") || stem.starts_with("part_") || stem.starts_with("part-") ||
         stem.starts_with("part.");
}

/// Says whether archives of these names are parts of one set: they differ only in a number, which
/// either stands apart or counts up by one from archive to archive.
bool are_parts(const std::vector<std::string>& stems) {
  if (std::ranges::all_of(stems, says_shard)) return true;
  std::vector<int64_t> numbers;
  const std::string_view text = shard_name(stems.front()).text;
  for (const std::string& stem : stems) {
    const ShardName name = shard_name(stem);
    if (!name.numbered || name.text != text) return false;
    numbers.push_back(name.number);
  }
  if (text.empty() || text.find_last_of("-_.") == text.size() - 1) return true;
  std::ranges::sort(numbers);
  return numbers.front() >= 0 && numbers.back() - numbers.front() == std::ssize(numbers) - 1 &&
         std::ranges::adjacent_find(numbers) == numbers.end();
}

}  // namespace

ImageSource image_source(const fs::path& root, std::string_view part) {
  std::error_code unknown;
  const bool train = part == "train";
  if (is_file(root)) return {.tars = train ? std::vector{root} : std::vector<fs::path>{}};
  for (const std::string_view name : part_names(part)) {
    const fs::path folder = root / name;
    if (!fs::is_directory(folder, unknown)) continue;
    std::vector<fs::path> archives = archives_in(folder);
    if (archives.empty()) return {.folder = folder};
    return {.tars = std::move(archives)};
  }
  if (!fs::is_directory(root, unknown)) return {};
  ImageSource source;
  const std::vector<fs::path> archives = archives_in(root);
  for (const fs::path& archive : archives)
    if (says_part(archive, part)) source.tars.push_back(archive);
  if (source.found() || !train) return source;
  for (const fs::path& archive : archives)
    if (!says_any_part(archive)) source.tars.push_back(archive);
  if (!source.found() && has_class_folders(root)) source.folder = root;
  return source;
}

std::vector<fs::path> files_of(const ImageSource& source) {
  if (source.folder.empty()) return source.tars;
  std::vector<fs::path> files;
  walk_folder(source.folder, [&](const fs::directory_entry& entry, const std::string&) {
    std::error_code unknown;
    if (entry.is_regular_file(unknown)) files.push_back(entry.path());
    return true;
  });
  std::ranges::sort(files);
  return files;
}

bool are_called_as_classes(const ImageSource& source) {
  const std::vector<fs::path>& tars = source.tars;
  if (tars.size() < 2 || !says_any_part(tars.front().parent_path())) return false;
  std::vector<std::string> stems;
  for (const fs::path& tar : tars) stems.push_back(tar.stem().string());
  return !are_parts(stems);
}

}  // namespace tutti::data
