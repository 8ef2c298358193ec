#include "tutti/data/format/folder_walk.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/data/format/file_bytes.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

class FolderWalk {
 public:
  using Look = std::function<bool(const fs::directory_entry&, const std::string&)>;

  FolderWalk(const fs::path& folder, const Look& look) : look_(look) {
    std::error_code unknown;
    for (fs::path above = fs::canonical(folder, unknown); !unknown && above.has_relative_path();) {
      above = above.parent_path();
      first_time(above);
    }
    first_time(folder);
    walk(folder, "");
    if (!passed_over_.empty())
      log::warn_alike(
          "{}: passed over: this link leads to a folder that lies above it or is listed "
          "elsewhere{}",
          passed_over_.front().string(),
          passed_over_.size() > 1 ? fmt::format("; so do {} others", passed_over_.size() - 1) : "");
  }

  std::vector<fs::path> passed_over() && { return std::move(passed_over_); }

 private:
  bool first_time(const fs::path& folder) {
    struct stat status {};
    return ::stat(folder.c_str(), &status) != 0 ||
           seen_.insert({status.st_dev, status.st_ino}).second;
  }

  /// Folders themselves come before links to folders, so that a link is what is passed over.
  bool walk(const fs::path& folder, const std::string& below) {
    std::vector<fs::directory_entry> links;
    for (const fs::directory_entry& entry : folder_entries(folder)) {
      std::error_code unknown;
      if (!entry.is_directory(unknown)) {
        if (!look_(entry, below + entry.path().filename().string())) return false;
      } else if (entry.is_symlink(unknown)) {
        links.push_back(entry);
      } else if (!enter(entry, below)) {
        return false;
      }
    }
    return std::ranges::all_of(links, [&](const auto& link) { return enter(link, below); });
  }
  bool enter(const fs::directory_entry& entry, const std::string& below) {
    if (!first_time(entry.path())) {
      passed_over_.push_back(entry.path());
      return true;
    }
    return walk(entry.path(), below + entry.path().filename().string() + "/");
  }

  const Look& look_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::vector<fs::path> passed_over_;
};

}  // namespace

std::vector<fs::path> walk_folder(
    const fs::path& folder,
    const std::function<bool(const fs::directory_entry&, const std::string&)>& look) {
  return FolderWalk(folder, look).passed_over();
}

std::vector<fs::directory_entry> folder_entries(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code failed;
  fs::directory_iterator entry(folder.empty() ? "." : folder, failed);
  for (const fs::directory_iterator end; !failed && entry != end; entry.increment(failed))
    if (!entry->path().filename().string().starts_with('.')) entries.push_back(*entry);
  if (failed)
    throw BadFile(fmt::format("{}: cannot look into the folder: {}", folder.string(),
                              file_error(failed.value())));
  std::ranges::sort(entries, {}, [](const fs::directory_entry& e) { return e.path().string(); });
  return entries;
}

}  // namespace tutti::data
