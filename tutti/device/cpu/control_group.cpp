#include "tutti/device/cpu/control_group.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace tutti::device {
namespace {

namespace fs = std::filesystem;

/// A mount of a hierarchy of control groups.
struct GroupMount {
  std::string root;         ///< the group that the mount point shows
  std::string controllers;  ///< for v1 ",rw,cpu,cpuacct,"; empty: v2
};

/// Decodes a path of mountinfo, which has spaces and backslashes as \040 and \134.
std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool octal =
        text[i] == '\\' && i + 3 < text.size() && text.find_first_not_of("01234567", i + 1) > i + 3;
    out += octal ? static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8)) : text[i];
    if (octal) i += 3;
  }
  return out;
}

/// Lists the mounts by mount point: a later mount hides an earlier one at the same place.
std::map<std::string, GroupMount> group_mounts(const fs::path& root) {
  std::map<std::string, GroupMount> mounts;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct"
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream front(line.substr(0, dash)), back(line.substr(dash + 3));
    std::string ignored, group, point, type, source, options;
    front >> ignored >> ignored >> ignored >> group >> point;
    back >> type >> source >> options;
    if (type == "cgroup2")
      mounts[unescaped(point)] = {unescaped(group), ""};
    else if (type == "cgroup")
      mounts[unescaped(point)] = {unescaped(group), "," + options + ","};
    else
      mounts.erase(unescaped(point));
  }
  return mounts;
}

/// Returns the folders of a group and of its ancestors, as far as a mount shows them, the group
/// first; only the mount point if the mount does not show the group.
std::vector<fs::path> shown_groups(const fs::path& root, const std::string& point,
                                   const std::string& shown, const std::string& group) {
  std::string below = group;
  if (shown != "/" && (group == shown || group.starts_with(shown + "/")))
    below = group.substr(shown.size());
  if (below.find("..") != std::string::npos) below.clear();  // a group outside the namespace
  const fs::path top = root / fs::path(point).relative_path();
  fs::path folder = top;
  std::vector<fs::path> folders = {top};
  for (const fs::path& name : fs::path(below).relative_path())
    if (!name.empty()) folders.push_back(folder /= name);
  std::ranges::reverse(folders);
  return folders;
}

/// Returns the folders of this process's groups in the hierarchy of a v1 controller, or of v2 ("").
std::vector<fs::path> own_groups(const fs::path& root,
                                 const std::map<std::string, GroupMount>& mounts,
                                 const std::string& controller) {
  std::vector<fs::path> folders;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // "4:cpu,cpuacct:/docker/5f", or "0::/user.slice"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string named = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? !named.empty()
                           : ("," + named + ",").find("," + controller + ",") == std::string::npos)
      continue;
    for (const auto& [point, mount] : mounts)
      if (controller.empty() ? mount.controllers.empty()
                             : mount.controllers.find("," + controller + ",") != std::string::npos)
        for (fs::path& folder : shown_groups(root, point, mount.root, line.substr(second + 1)))
          folders.push_back(std::move(folder));
  }
  return folders;
}

/// Returns the first number of a file; nothing for "max" or without a number.
std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// Returns the number behind a word in a file of lines "word number"; 0 if the word is missing.
int64_t number_of(const fs::path& path, const std::string& wanted) {
  std::ifstream file(path);
  std::string word;
  for (int64_t value = 0; file >> word >> value;)
    if (word == wanted) return value;
  return 0;
}

/// Keeps the smaller quota, with the counts of its group.
void take_quota(const fs::path& group, double quota, double period, GroupLimits& limits) {
  if (quota <= 0 || period <= 0) return;
  if (limits.processors > 0 && limits.processors <= quota / period) return;
  limits.processors = quota / period;
  limits.periods = number_of(group / "cpu.stat", "nr_periods");
  limits.throttled_periods = number_of(group / "cpu.stat", "nr_throttled");
}

/// `unused` is the part of `used` that the kernel would free first.
void take_memory(std::optional<int64_t> limit, std::optional<int64_t> used, int64_t unused,
                 GroupLimits& limits) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;  // v1 writes the largest number of pages there is
  if (!limit || *limit >= kNoLimit || *limit < 0) return;
  const int64_t left =
      std::max<int64_t>(0, *limit - std::max<int64_t>(0, used.value_or(0) - unused));
  limits.memory_left = limits.memory_bytes > 0 ? std::min(limits.memory_left, left) : left;
  limits.memory_bytes = limits.memory_bytes > 0 ? std::min(limits.memory_bytes, *limit) : *limit;
}

}  // namespace

GroupLimits read_group_limits(const fs::path& root) {
  GroupLimits limits;
  const auto mounts = group_mounts(root);
  for (const fs::path& group : own_groups(root, mounts, "")) {
    double quota = 0, period = 0;
    if (std::ifstream(group / "cpu.max") >> quota >> period)
      take_quota(group, quota, period, limits);
    const fs::path stat = group / "memory.stat";
    for (const char* limit : {"memory.max", "memory.high"})
      take_memory(number_in(group / limit), number_in(group / "memory.current"),
                  number_of(stat, "inactive_file") + number_of(stat, "active_file"), limits);
  }
  for (const fs::path& group : own_groups(root, mounts, "cpu"))
    take_quota(group, static_cast<double>(number_in(group / "cpu.cfs_quota_us").value_or(-1)),
               static_cast<double>(number_in(group / "cpu.cfs_period_us").value_or(0)), limits);
  for (const fs::path& group : own_groups(root, mounts, "memory")) {
    const fs::path stat = group / "memory.stat";
    take_memory(
        number_in(group / "memory.limit_in_bytes"), number_in(group / "memory.usage_in_bytes"),
        number_of(stat, "total_inactive_file") + number_of(stat, "total_active_file"), limits);
  }
  return limits;
}

}  // namespace tutti::device
