#include "tutti/train/settings/replay_check.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

TEST(ReplaySettings, WhatTheClockDoesNotKnowIsAnError) {
  config::RunConfig config;
  config.comm.compression = "bf16";
  config.run.slow = {"1:3"};
  EXPECT_NO_THROW(check_replay(config)) << "it is no replay";
  config.replay.machine = "machine.toml";
  EXPECT_THROW(check_replay(config), ConfigError) << "ranks that are slow";
  config.run.slow = {};
  EXPECT_THROW(check_replay(config), ConfigError) << "fewer bytes than gradients have";
  config.comm.compression = "none";
  EXPECT_NO_THROW(check_replay(config));
  config.run.slow_sigma = 0.1;
  EXPECT_THROW(check_replay(config), ConfigError);
}

}  // namespace
}  // namespace tutti::train
