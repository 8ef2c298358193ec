#include "tutti/mlsl/settings.h"

#include <gtest/gtest.h>

#include "tutti/mlsl/thread_environments.h"

namespace tutti::mlsl {
namespace {

// Otherwise the kernel would end arbitrary processes: two heaps of 30 GB on 23 GB of memory.
TEST(MlslSettings, HeapsThatDoNotFitTheMemoryAreRefused) {
  constexpr size_t kGib = size_t{1} << 30;
  check_heap(10 * kGib, 2, int64_t{23} << 30);
  check_heap(0, 64, 0);
  try {
    check_heap(30 * kGib, 2, int64_t{23} << 30);
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("MLSL_HEAP_SIZE_GB: 2 ranks of this node ask for 30 GiB each, and "
                                 "23 GiB of memory are free; set it to less than 11.5"))
        << error.what();
  }
}

TEST(MlslSettings, DefaultsValuesAndMistakes) {
  const Settings usual = read_settings(given({}));
  EXPECT_FALSE(usual.newest_first);
  EXPECT_EQ(usual.priority_threshold, 10000u);
  EXPECT_TRUE(usual.ignored.empty());
  const Settings set = read_settings(given({{"MLSL_MSG_PRIORITY", "1"},
                                            {"MLSL_HEAP_SIZE_GB", "0.5"},
                                            {"MLSL_NUM_SERVERS", "4"},
                                            {"MLSL_HOSTNAME", "n1"},
                                            {"MLSL_LARGE_MSG_SIZE_MB", "2"}}));
  EXPECT_TRUE(set.newest_first);
  EXPECT_EQ(set.heap_bytes, size_t{1} << 29);
  EXPECT_EQ(set.large_bytes, size_t{2} << 20);
  EXPECT_EQ(set.servers, 4);
  EXPECT_EQ(set.ignored, std::vector<std::string>{"MLSL_HOSTNAME"});
  EXPECT_FALSE(read_settings(given({{"MLSL_MSG_PRIORITY", "1"}, {"MLSL_MSG_PRIORITY_MODE", "0"}}))
                   .newest_first);
  for (const char* bad : {"2", "-1", "1x", "yes"}) {
    try {
      read_settings(given({{"MLSL_STATS", bad}}));
      ADD_FAILURE() << bad;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("MLSL_STATS"), std::string::npos);
    }
  }
}

TEST(MlslSettings, ServersHaveTheCoresOfTheList) {
  using Cores = std::vector<int>;
  const auto cores = [](const char* servers, const char* list, int local_rank) {
    return cores_of_servers(
        read_settings(given({{"MLSL_NUM_SERVERS", servers}, {"MLSL_SERVER_AFFINITY", list}})),
        local_rank);
  };
  EXPECT_EQ(cores("2", "", 0), (Cores{comm::Progress::kNoCore, comm::Progress::kNoCore}));
  EXPECT_EQ(cores("2", "12,13,14,15", 0), (Cores{12, 13}));
  EXPECT_EQ(cores("2", "12,13,14,15", 1), (Cores{14, 15}));
  EXPECT_EQ(cores("1", "7", 1), (Cores{7}));
  EXPECT_EQ(cores("0", "7", 0), Cores{});
  EXPECT_EQ(read_settings(given({{"MLSL_SERVER_AFFINITY", "7"}})).ignored.size(), 1u);
  for (const char* bad : {"x", "1,", ",1", "1,,2", "-1", "1-3"})
    EXPECT_THROW(cores("2", bad, 0), ConfigError) << bad;
  EXPECT_THROW(cores("17", "", 0), ConfigError);
}

}  // namespace
}  // namespace tutti::mlsl
