#include "tutti/device/cpu/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace tutti::device {

TEST(Topology, CountsFitTogether) {
  const Topology t = read_topology();
  EXPECT_GE(t.hardware_threads, t.cores);
  EXPECT_GE(t.cores, t.bound_cores);
  EXPECT_EQ(t.bound_processors.size(), static_cast<size_t>(t.bound_cores));
  EXPECT_GE(t.usable_cores(), 1);
  EXPECT_LE(t.usable_cores(), t.cores);
  EXPECT_GT(t.memory_bytes, 0);
  EXPECT_LE(t.available_bytes, t.memory_bytes);
}

TEST(Topology, SeesABinding) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(read_topology().bound_cores, 1);
  EXPECT_EQ(read_topology().bound_processors, std::vector<int>{first});
  EXPECT_EQ(affinity_list(), std::to_string(first));
  sched_setaffinity(0, sizeof before, &before);
}

TEST(Topology, OpenMPLeavesATeamSomeOfTheCores) {
  const std::vector<int> bound = read_topology().bound_processors;
  limit_teams({bound.front()});
  EXPECT_EQ(read_topology().cores_of_team(), 1);
  EXPECT_EQ(read_topology().bound_processors, bound);
  limit_teams({});
  EXPECT_EQ(read_topology().cores_of_team(), static_cast<int>(bound.size()));
}

TEST(Topology, QuotaLimitsUsableCores) {
  Topology t;
  t.cores = 8;
  EXPECT_EQ(t.usable_cores(), 8);
  t.cpu_quota = 1.5;
  EXPECT_EQ(t.usable_cores(), 2);
  t.cpu_quota = 2.0;
  EXPECT_EQ(t.usable_cores(), 2);
}

TEST(Topology, Meminfo) {
  const std::string text = "MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n";
  EXPECT_EQ(parse_meminfo(text, "MemTotal"), 2048 * 1024);
  EXPECT_EQ(parse_meminfo(text, "MemAvailable"), 1024 * 1024);
  EXPECT_EQ(parse_meminfo(text, "Absent"), 0);
}

}  // namespace tutti::device
