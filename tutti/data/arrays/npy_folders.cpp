#include "tutti/data/arrays/npy_folders.h"

#include <map>
#include <set>
#include <string>

#include "tutti/data/format/open_array.h"

namespace tutti::data {

namespace fs = std::filesystem;

std::vector<fs::path> npy_folders(std::vector<fs::path> files, std::span<const FieldLine> lines) {
  std::vector<fs::path> folders;
  std::map<fs::path, std::set<std::string>> names;
  for (const fs::path& file : files) {
    if (file.extension() != ".npy") return files;
    const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
    if (!names.contains(folder)) folders.push_back(folder);
    names[folder].insert(file.stem().string());
  }
  for (const auto& [folder, own] : names)
    for (const FieldLine& line : lines)
      for (const std::string& array : line.arrays)
        if (!own.contains(array)) return files;
  return folders;
}

bool look_like_fields(std::span<const fs::path> files) {
  if (files.size() < 2 || files.size() > 16) return false;
  std::set<int64_t> firsts;
  std::set<std::pair<std::vector<int64_t>, ElementType>> kinds;
  bool numbered = false;
  for (const fs::path& file : files) {
    if (file.extension() != ".npy" || file.parent_path() != files.front().parent_path())
      return false;
    const ArrayFile opened = open_array_file(file);
    const ArrayInfo& info = opened.arrays().front();
    if (info.shape.empty() || !info.problem.empty()) return false;
    firsts.insert(info.shape.front());
    kinds.emplace(info.shape, info.type);
    numbered |= file.stem().string().find_first_of("0123456789") != std::string::npos;
  }
  return firsts.size() == 1 && (kinds.size() > 1 || !numbered);
}

}  // namespace tutti::data
