#include "tutti/device/cpu/control_group.h"

#include <gtest/gtest.h>

#include "tutti/base/scratch_directory.h"

namespace tutti::device {
namespace {

/// Files of /proc and /sys below a folder.
struct GroupFixture {
  ScratchDirectory scratch;
  void file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((scratch.path() / path).parent_path());
    scratch.write(path, text);
  }
  GroupLimits limits() const { return read_group_limits(scratch.path()); }
};

constexpr int64_t kMiB = 1 << 20;
constexpr const char* kUnlimited = "9223372036854771712\n";

TEST(ControlGroup, NothingThereIsNoLimit) {
  const GroupLimits limits = GroupFixture().limits();
  EXPECT_EQ(limits.processors, 0);
  EXPECT_EQ(limits.memory_bytes, 0);
}

TEST(ControlGroup, OfVersionTwoTheLeastOfAllLevelsCounts) {
  const GroupFixture f;
  f.file("proc/self/cgroup", "0::/user.slice/user 1.slice/job\n");
  f.file("proc/self/mountinfo",
         "22 1 0:20 / / rw - ext4 /dev/sda rw\n"
         "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  f.file("sys/fs/cgroup/cpu.stat", "usage_usec 1\n");  // the root has no limits
  f.file("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  f.file("sys/fs/cgroup/user.slice/user 1.slice/cpu.max", "150000 100000\n");
  f.file("sys/fs/cgroup/user.slice/user 1.slice/cpu.stat",
         "usage_usec 7\nnr_periods 20\nnr_throttled 15\nthrottled_usec 9\n");
  f.file("sys/fs/cgroup/user.slice/user 1.slice/job/cpu.max", "400000 100000\n");
  f.file("sys/fs/cgroup/user.slice/user 1.slice/job/cpu.stat", "nr_periods 1\n");
  f.file("sys/fs/cgroup/user.slice/memory.max", std::to_string(900 * kMiB));
  f.file("sys/fs/cgroup/user.slice/memory.high", std::to_string(800 * kMiB));
  f.file("sys/fs/cgroup/user.slice/memory.current", std::to_string(700 * kMiB));
  f.file("sys/fs/cgroup/user.slice/memory.stat", "anon 1\ninactive_file " +
                                                     std::to_string(40 * kMiB) + "\nactive_file " +
                                                     std::to_string(10 * kMiB) + "\n");
  f.file("sys/fs/cgroup/user.slice/user 1.slice/job/memory.max", "max\n");
  GroupLimits limits = f.limits();
  EXPECT_EQ(limits.processors, 1.5);
  EXPECT_EQ(limits.periods, 20);
  EXPECT_EQ(limits.throttled_periods, 15);
  EXPECT_EQ(limits.memory_bytes, 800 * kMiB);
  EXPECT_EQ(limits.memory_left, 150 * kMiB);  // 800 - (700 - 50 of cached files)

  // A container shows its own group as the root, whatever its name outside is.
  f.file("proc/self/cgroup", "0::/../../elsewhere\n");
  f.file("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(f.limits().processors, 0.5);
}

TEST(ControlGroup, OfVersionOneEachControllerHasItsOwnGroups) {
  const GroupFixture f;
  f.file("proc/self/cgroup",
         "11:memory:/docker/5f/inner\n4:cpu,cpuacct:/docker/5f\n3:cpuset:/\n0::/docker/5f\n");
  // A bind mount that shows the container's group hides the one before it; a hybrid has v2, too.
  f.file("proc/self/mountinfo",
         "32 31 0:29 / /sys/fs/cgroup/cpu\\040x rw - cgroup cgroup rw,cpu,cpuacct\n"
         "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
         "35 31 0:32 / /sys/fs/cgroup/memory rw shared:2 master:1 - cgroup cgroup rw,memory\n"
         "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
         "50 32 0:29 /docker/5f /sys/fs/cgroup/cpu\\040x rw - cgroup cgroup rw,cpu,cpuacct\n");
  f.file("sys/fs/cgroup/cpu x/cpu.cfs_quota_us", "100000\n");
  f.file("sys/fs/cgroup/cpu x/cpu.cfs_period_us", "50000\n");
  f.file("sys/fs/cgroup/cpu x/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 5\n");
  f.file("sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "1\n");  // belongs to another hierarchy
  f.file("sys/fs/cgroup/cpuset/cpu.cfs_period_us", "1000\n");
  f.file("sys/fs/cgroup/memory/memory.limit_in_bytes", kUnlimited);
  f.file("sys/fs/cgroup/memory/docker/5f/memory.limit_in_bytes", std::to_string(256 * kMiB));
  f.file("sys/fs/cgroup/memory/docker/5f/memory.usage_in_bytes", std::to_string(100 * kMiB));
  f.file("sys/fs/cgroup/memory/docker/5f/memory.stat",
         "cache 1\ntotal_inactive_file " + std::to_string(60 * kMiB) + "\n");
  f.file("sys/fs/cgroup/memory/docker/5f/inner/memory.limit_in_bytes", kUnlimited);
  const GroupLimits limits = f.limits();
  EXPECT_EQ(limits.processors, 2);
  EXPECT_EQ(limits.periods, 9);
  EXPECT_EQ(limits.throttled_periods, 3);
  EXPECT_EQ(limits.memory_bytes, 256 * kMiB);
  EXPECT_EQ(limits.memory_left, 216 * kMiB);

  f.file("sys/fs/cgroup/cpu x/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(f.limits().processors, 0);
}

}  // namespace
}  // namespace tutti::device
