#include "tutti/cli/verbs/study_schemes.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti::cli {
namespace {

bool only_the_seed(std::string_view key) { return key == "run.seed"; }

TEST(StudySchemes, KeysFollowTheirScheme) {
  const auto schemes =
      parse_schemes("step,ps:async optimizer.momentum=0 sync.stale_rate=1,local:8", only_the_seed);
  ASSERT_EQ(schemes.size(), 3u);
  EXPECT_EQ(schemes[0].sets, (std::vector<std::string>{"sync.scheme=step"}));
  EXPECT_EQ(schemes[1].sets,
            (std::vector<std::string>{"sync.scheme=ps:async", "optimizer.momentum=0",
                                      "sync.stale_rate=1"}));
  EXPECT_EQ(schemes[1].folder, "ps-async_momentum=0_stale_rate=1");
  EXPECT_EQ(schemes[2].folder, "local-8");
}

TEST(StudySchemes, OneSchemeWithOtherKeysIsAnotherStudy) {
  const auto schemes = parse_schemes("local:8,local:8 sync.outer=nesterov", only_the_seed);
  ASSERT_EQ(schemes.size(), 2u);
  EXPECT_EQ(schemes[0].folder, "local-8");
  EXPECT_EQ(schemes[1].folder, "local-8_outer=nesterov");
  EXPECT_THROW(parse_schemes("local:8,local:8", only_the_seed), ConfigError);
}

TEST(StudySchemes, WhatIsNoSettingIsSaid) {
  EXPECT_THROW(parse_schemes("step local:8", only_the_seed), ConfigError);
  EXPECT_THROW(parse_schemes("step =1", only_the_seed), ConfigError);
  EXPECT_THROW(parse_schemes("step run.seed=1", only_the_seed), ConfigError);
  EXPECT_THROW(parse_schemes("step sync.scheme=local:8", only_the_seed), ConfigError);
}

}  // namespace
}  // namespace tutti::cli
