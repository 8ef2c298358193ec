#pragma once
// The control groups of this process grant it this: cgroup v2, v1, and both beside each other, as
// containers, batch systems and systemd's slices set them. Linux.

#include <cstdint>
#include <filesystem>

namespace tutti {

/// The least of what the process's own group and all groups above it grant, as far as they are in
/// sight. All of it is "no limit" where there are no control groups.
struct GroupLimits {
  double processors = 0;     ///< worth of time (cpu.max, cpu.cfs_quota_us); 0: no quota
  int64_t memory_bytes = 0;  ///< memory.max, memory.high, memory.limit_in_bytes; 0: no limit
  int64_t memory_left = 0;   ///< until a group is at its limit; what files are cached in is free
  /// The group with that quota had so far: periods in which it ran, and those of them in which it
  /// was stopped because its time was used up (cpu.stat).
  int64_t periods = 0, throttled_periods = 0;
};

/// Reads proc/self/cgroup, proc/self/mountinfo and the groups that they name, below `root`. What
/// cannot be read sets no limit; it never throws.
GroupLimits read_group_limits(const std::filesystem::path& root = "/");

}  // namespace tutti
