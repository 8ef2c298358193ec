#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/architecture/tree_rules.h"

namespace tutti::architecture {
namespace {

/// Follows the rooms that a room may include until one repeats.
class CycleSearch {
 public:
  explicit CycleSearch(const Rules& rules) {
    for (const auto& [folder, uses] : rules.folders)
      for (const std::string& place : uses)
        for (const std::string& room : rooms_of(place, rules))
          if (room != folder) uses_[folder].push_back(room);
  }

  /// Returns a way from `folder` back to it, "a -> b -> a"; empty if there is none.
  std::string from(const std::string& folder) {
    way_ = {folder};
    seen_.clear();
    return leads_back(folder) ? fmt::format("{}", fmt::join(way_, " -> ")) : "";
  }

 private:
  bool leads_back(const std::string& at) {
    for (const std::string& next : uses_[at]) {
      way_.push_back(next);
      if (next == way_.front()) return true;
      if (std::ranges::find(seen_, next) == seen_.end()) {
        seen_.push_back(next);
        if (leads_back(next)) return true;
      }
      way_.pop_back();
    }
    return false;
  }

  /// Returns all rooms that have a line in a folder; one for "A/." and for a header.
  static std::vector<std::string> rooms_of(const std::string& place, const Rules& rules) {
    const bool one = place.ends_with("/.") || place.ends_with(".h");
    std::vector<std::string> rooms = {folder_of(one ? place : place + "/", rules)};
    for (const auto& [folder, uses] : rules.folders)
      if (!one && folder.starts_with(place + "/")) rooms.push_back(folder);
    return rooms;
  }

  std::map<std::string, std::vector<std::string>> uses_;
  std::vector<std::string> way_, seen_;
};

}  // namespace

std::vector<Violation> check_cycles(const std::filesystem::path& rule_file, const Rules& rules) {
  CycleSearch search(rules);
  for (const auto& [folder, uses] : rules.folders)
    if (const std::string way = search.from(folder); !way.empty())
      return {{rule_file, 0, fmt::format("folders include each other in a circle: {}", way)}};
  return {};
}

}  // namespace tutti::architecture
