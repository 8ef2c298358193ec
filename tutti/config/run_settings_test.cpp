#include "tutti/config/run_settings.h"

#include <gtest/gtest.h>

#include <set>

namespace tutti::config {
namespace {

TEST(RunSettings, RanksShareAllButWhatANodeHasOfItsOwn) {
  const std::set<std::string> own = {"comm.address",     "data.cache.dir", "data.dir",
                                     "data.staging.dir", "model.library",  "plan.tuning",
                                     "run.log_level"};
  const std::string before = shared_lines(run_settings(RunConfig{}));
  for (const ConfigKey& row : config_keys()) {
    RunSettings settings = run_settings(RunConfig{});
    settings.at(row.name) += "0";
    EXPECT_EQ(shared_lines(settings) == before, own.contains(row.name)) << row.name;
    EXPECT_EQ(row.among_ranks == AmongRanks::may_differ, own.contains(row.name)) << row.name;
  }
}

TEST(RunSettings, RanksShareNamesThatAreNoKeysBehindTheTable) {
  RunSettings settings = run_settings(RunConfig{});
  settings["a.name"] = "some images";
  EXPECT_TRUE(shared_lines(settings).starts_with("run.seed = 1\n"));
  EXPECT_TRUE(shared_lines(settings).ends_with("\na.name = some images\n"));
}

}  // namespace
}  // namespace tutti::config
