#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "tests/architecture/tree_rules.h"

namespace tutti::architecture {
namespace {

namespace fs = std::filesystem;

bool is_code(const fs::path& file) {
  constexpr std::array kKinds = {".h", ".c", ".cpp", ".hpp", ".cu", ".cuh", ".py", ".sh", ".cmake"};
  return std::ranges::find(kKinds, file.extension()) != kKinds.end() ||
         file.filename() == "CMakeLists.txt";
}

int lines_of(const fs::path& file) {
  std::ifstream stream(file);
  int lines = 0;
  for (std::string text; std::getline(stream, text);) ++lines;
  return lines;
}

}  // namespace

std::vector<Violation> check_lengths(const fs::path& root,
                                     const std::vector<std::string>& folders) {
  std::vector<Violation> found;
  std::map<fs::path, int> files;  // in each folder of tutti/
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !is_code(entry.path())) continue;
      if (folder == "tutti" && entry.path().filename() != "CMakeLists.txt")
        ++files[entry.path().parent_path()];
      const int lines = lines_of(entry.path());
      if (lines > kFileLines)
        found.push_back(
            {fs::relative(entry.path(), root), lines,
             fmt::format("a file has at most {} lines: part it by its subjects", kFileLines)});
    }
  for (const auto& [folder, count] : files)
    if (count > kFolderFiles)
      found.push_back({fs::relative(folder, root), 0,
                       fmt::format("a folder has at most {} sources, and this one {}: part it by "
                                   "its purposes",
                                   kFolderFiles, count)});
  std::ranges::sort(found, {}, &Violation::file);
  return found;
}

}  // namespace tutti::architecture
