#pragma once
// Limits that control groups set for this process: cgroup v2, v1, and both together, as containers,
// batch systems and systemd's slices configure them. Linux.

#include <cstdint>
#include <filesystem>

namespace tutti::device {

/// The smallest limits of the process's own group and all visible groups above it. Without control
/// groups every member says "no limit".
struct GroupLimits {
  double processors = 0;     ///< processors' worth of time (cpu.max, cpu.cfs_quota_us); 0: no quota
  int64_t memory_bytes = 0;  ///< memory.max, memory.high, memory.limit_in_bytes; 0: no limit
  int64_t memory_left = 0;   ///< until a group is at its limit; file caches count as free
  /// Counts of the group that sets the quota: periods in which it ran, and how many of them stopped
  /// it because its time was used up (cpu.stat).
  int64_t periods = 0, throttled_periods = 0;
};

/// Reads proc/self/cgroup, proc/self/mountinfo and the groups that they name, below `root`. Files
/// that cannot be read set no limit; it never throws.
GroupLimits read_group_limits(const std::filesystem::path& root = "/");

}  // namespace tutti::device
