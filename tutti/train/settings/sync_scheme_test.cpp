#include "tutti/train/settings/sync_scheme.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::train {
namespace {

config::RunConfig config_of(const std::string& scheme) {
  config::RunConfig config;
  config.sync.scheme = scheme;
  return config;
}

TEST(Sync, SchemesSayHowOftenReplicasMeet) {
  EXPECT_FALSE(meeting_settings(config_of("step"), 50));
  const auto local = meeting_settings(config_of("local:8"), 50);
  ASSERT_TRUE(local);
  EXPECT_EQ(local->kind, sync::MeetingKind::average);
  EXPECT_EQ(local->every, 8);
  EXPECT_EQ(meeting_settings(config_of("local:epoch"), 50)->every, 50);
  EXPECT_EQ(meeting_settings(config_of("local:never"), 50)->kind, sync::MeetingKind::never);
  EXPECT_EQ(meeting_settings(config_of("easgd:4"), 50)->kind, sync::MeetingKind::elastic);
  EXPECT_EQ(meeting_settings(config_of("dpsgd"), 50)->kind, sync::MeetingKind::neighbours);
  EXPECT_EQ(meeting_settings(config_of("dpsgd"), 50)->every, 1);
}

TEST(Sync, MeetingAfterEveryStepIsTheStepOfPlainGradientDescentAlone) {
  config::RunConfig config = config_of("local:1");
  EXPECT_FALSE(meeting_settings(config, 50));
  config.optimizer.name = config::OptimizerKind::adam;
  EXPECT_TRUE(meeting_settings(config, 50));
  config.optimizer = {};
  config.optimizer.clip_norm = 1;
  EXPECT_TRUE(meeting_settings(config, 50));
  config.optimizer = {};
  config.sync.outer = sync::OuterStep::nesterov;
  EXPECT_TRUE(meeting_settings(config, 50));
  config.sync.outer = sync::OuterStep::none;
  config.sync.delay = 1;
  EXPECT_TRUE(meeting_settings(config, 50));
}

TEST(Sync, WhatIsNoSchemeIsAnErrorThatNamesThem) {
  for (const std::string text :
       {"", "gossip", "local", "local:", "local:x", "local:-1", "step:2", "easgd:never", "dpsgd:0"})
    EXPECT_THROW(parse_sync(text), ConfigError) << text;
}

TEST(Sync, CentresMeetEveryFourEpochsWhereTheirReplicasMeetEveryEpoch) {
  config::RunConfig config = config_of("easgd:epoch");
  config.sync.tree = 2;
  EXPECT_EQ(meeting_settings(config, 50)->up, 200);
  config.sync.tree_up = 100;
  EXPECT_TRUE(throws<ConfigError>({"is not for"}, [&] { check_sync(config); }));
}

TEST(Sync, KeysOfOtherSchemesAreErrors) {
  config::RunConfig config = config_of("easgd:2");
  EXPECT_NO_THROW(check_sync(config));
  config.sync.fragments = 2;
  EXPECT_THROW(check_sync(config), ConfigError);
  config = config_of("local:8");
  config.sync.alpha = 0.1;
  EXPECT_THROW(check_sync(config), ConfigError);
  config = config_of("easgd:2");
  config.sync.delay = 1;
  EXPECT_THROW(check_sync(config), ConfigError);
  config = config_of("local:8");
  config.sync.delay = 1;
  EXPECT_NO_THROW(check_sync(config));
  for (const auto change : {+[](config::SyncSection& s) { s.fragments = 2; },
                            +[](config::SyncSection& s) { s.first_steps = 3; },
                            +[](config::SyncSection& s) { s.state = sync::MetState::average; },
                            +[](config::SyncSection& s) { s.scheme = "local:never"; }}) {
    config::RunConfig refused = config;
    change(refused.sync);
    EXPECT_THROW(check_sync(refused), ConfigError);
  }
  config = config_of("local:8");
  config.parallel.spatial = {2};
  EXPECT_THROW(check_sync(config), ConfigError);
}

}  // namespace
}  // namespace tutti::train
