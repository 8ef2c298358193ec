#include "tutti/data/file/folder_walk.h"

#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/data/file/file_bytes.h"

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
    for (bool more = walk(folder, ""); more && !links_.empty();) {
      const auto [link, below] = std::move(links_.front());
      links_.pop_front();
      more = enter(link, below);
    }
    if (!passed_over_.empty())
      log::warn_once(
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

  /// Links to folders wait until all real folders were visited, so that a link is skipped and not
  /// the folder.
  bool walk(const fs::path& folder, const std::string& below) {
    for (const fs::directory_entry& entry : folder_entries(folder)) {
      std::error_code unknown;
      if (!entry.is_directory(unknown)) {
        if (!look_(entry, below + entry.path().filename().string())) return false;
      } else if (entry.is_symlink(unknown)) {
        links_.emplace_back(entry.path(), below);
      } else if (!enter(entry.path(), below)) {
        return false;
      }
    }
    return true;
  }
  bool enter(const fs::path& folder, const std::string& below) {
    if (!first_time(folder)) {
      passed_over_.push_back(folder);
      return true;
    }
    return walk(folder, below + folder.filename().string() + "/");
  }

  const Look& look_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::deque<std::pair<fs::path, std::string>> links_;  // to be entered, each with its path
  std::vector<fs::path> passed_over_;
};

}  // namespace

std::vector<fs::path> walk_folder(
    const fs::path& folder,
    const std::function<bool(const fs::directory_entry&, const std::string&)>& look) {
  return FolderWalk(folder, look).passed_over();
}

std::vector<fs::directory_entry> folder_entries(const fs::path& folder, bool hidden) {
  std::vector<fs::directory_entry> entries;
  std::error_code failed;
  fs::directory_iterator entry(folder.empty() ? "." : folder, failed);
  for (const fs::directory_iterator end; !failed && entry != end; entry.increment(failed))
    if (hidden || !entry->path().filename().string().starts_with('.')) entries.push_back(*entry);
  if (failed)
    throw IoError(fmt::format("{}: cannot look into the folder: {}", folder.string(),
                              file_error(failed.value())));
  std::ranges::sort(entries, {}, [](const fs::directory_entry& e) { return e.path().string(); });
  return entries;
}

}  // namespace tutti::data
