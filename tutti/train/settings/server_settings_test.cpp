#include "tutti/train/settings/server_settings.h"

#include <gtest/gtest.h>

#include <array>

#include "tutti/base/error.h"
#include "tutti/sync/delay_compensation.h"

namespace tutti::train {
namespace {

config::RunConfig served_config(const std::string& scheme) {
  config::RunConfig config;
  config.sync.scheme = scheme;
  return config;
}

TEST(ServerSettings, SchemesSayHowGradientsAreApplied) {
  EXPECT_FALSE(server_settings(served_config("step")));
  EXPECT_FALSE(server_settings(served_config("local:8")));
  EXPECT_TRUE(server_settings(served_config("ps:sync"))->together);
  EXPECT_FALSE(server_settings(served_config("ps:async"))->together);
  EXPECT_FALSE(server_settings(served_config("ps:async"))->bound);
  EXPECT_EQ(server_settings(served_config("ps:ssp:3"))->bound, 3);
  EXPECT_EQ(server_settings(served_config("groups:8"))->group, 8);
  for (const std::string text : {"ps", "ps:", "ps:later", "ps:ssp", "ps:ssp:", "ps:ssp:-1",
                                 "groups", "groups:", "groups:0", "groups:4x"})
    EXPECT_THROW(parse_servers(text), ConfigError) << text;
}

TEST(ServerSettings, GroupsDivideTheReplicasOrAreOne) {
  const ServerSettings eights{.group = 8};
  EXPECT_EQ(eights.workers(32), 4);
  EXPECT_EQ(eights.group_of(32), 8);
  EXPECT_EQ(eights.workers(4), 1);
  EXPECT_EQ(eights.group_of(4), 4);
  EXPECT_THROW(eights.workers(20), ConfigError);
  EXPECT_EQ(ServerSettings{.together = true}.workers(20), 1);
}

TEST(ServerSettings, AQuorumIsOfAllReplicas) {
  config::RunConfig config = served_config("ps:sync");
  EXPECT_EQ(gradients_of_step(config, 4), 4);
  EXPECT_FALSE(served_by_ranks(config, 4)) << "it is the step";
  config.sync.quorum = 3;
  EXPECT_EQ(gradients_of_step(config, 4), 3);
  EXPECT_TRUE(served_by_ranks(config, 4));
  EXPECT_FALSE(served_by_ranks(config, 3)) << "nobody is a backup";
  EXPECT_NO_THROW(check_served_job(config, 4, 4, nullptr));
  EXPECT_THROW(check_served_job(config, 4, 2, nullptr), ConfigError) << "each worker has a rank";
  config.comm.compression = "int8";
  EXPECT_THROW(check_served_job(config, 4, 4, nullptr), ConfigError);
  EXPECT_NO_THROW(check_served_job(config, 3, 3, nullptr));
  config.comm.compression = "none";
  EXPECT_THROW(gradients_of_step(config, 2), ConfigError);
  config.sync.scheme = "step";
  EXPECT_EQ(gradients_of_step(config, 4), 4) << "and the key is idle there";
  config.sync.scheme = "ps:sync";
  EXPECT_EQ(gradients_of_step(config, 1), 1) << "a study begins there";
  EXPECT_NO_THROW(check_served_job(config, 1, 1, nullptr));
}

TEST(ServerSettings, RealServersNeedARankForEachReplica) {
  config::RunConfig config = served_config("ps:async");
  EXPECT_NO_THROW(check_served_job(config, 4, 4, nullptr));
  EXPECT_THROW(check_served_job(config, 4, 2, nullptr), ConfigError);
  config.sync.servers = 5;
  EXPECT_THROW(check_served_job(config, 4, 4, nullptr), ConfigError) << "one is beside nobody";
  config.sync.servers = 2;
  EXPECT_NO_THROW(check_served_job(config, 4, 4, nullptr));
  config.optimizer.clip_norm = 1;
  EXPECT_THROW(check_served_job(config, 4, 4, nullptr), ConfigError) << "nobody has the norm";
  config.optimizer.clip_norm = 0;
  config.sync.server_ranks = 1;
  EXPECT_THROW(check_served_job(config, 4, 4, nullptr), ConfigError) << "two or one?";
  config.sync.servers = 1;
  EXPECT_EQ(worker_ranks(config, 5), 4);
  EXPECT_THROW((void)worker_ranks(config, 1), ConfigError);
  EXPECT_NO_THROW(check_served_job(config, 1, 1, nullptr)) << "one worker, whom somebody serves";
  EXPECT_TRUE(applied_one_by_one(config, 1));
  config.run.slow = {"3:2", "5:2"};  // the last of four workers, and no rank
  EXPECT_NO_THROW(check_served_job(config, 4, 4, nullptr));
  config.run.slow = {"4:2"};
  EXPECT_THROW(check_served_job(config, 4, 4, nullptr), ConfigError) << "a server computes nothing";
  config.run.slow = {};
  config.sync.scheme = "ps:sync";
  EXPECT_TRUE(served_by_ranks(config, 4)) << "the step, by a server";
  EXPECT_EQ(worker_ranks(config, 5), 4);
  config.sync.scheme = "step";
  EXPECT_EQ(worker_ranks(config, 4), 4) << "the key is idle there";
}

TEST(ServerSettings, WhatAJobCannotDoIsAnError) {
  config::RunConfig async = served_config("ps:async");
  comm::Machine machine;
  EXPECT_THROW(check_served_job(async, 4, 1, nullptr), ConfigError) << "nobody says who is next";
  EXPECT_THROW(check_served_job(async, 4, 2, &machine), ConfigError);
  EXPECT_NO_THROW(check_served_job(async, 4, 1, &machine));
  EXPECT_NO_THROW(check_served_job(async, 1, 1, nullptr)) << "one worker is one replica";
  EXPECT_NO_THROW(check_served_job(served_config("ps:sync"), 4, 2, nullptr));
  machine.measured = true;
  EXPECT_THROW(check_served_job(async, 4, 1, &machine), ConfigError);
  EXPECT_NO_THROW(check_served_job(async, 1, 1, &machine));
  machine.measured = false;
  async.replay.spill = "folder";
  EXPECT_NO_THROW(check_served_job(async, 4, 1, &machine));
  EXPECT_THROW(check_served_job(async, 4, 4, nullptr), ConfigError) << "real servers do not spill";
  config::RunConfig sync = served_config("ps:sync");
  sync.replay.spill = "folder";
  EXPECT_THROW(server_settings(sync), ConfigError) << "nothing of it spills";
}

TEST(ServerSettings, GradientsAreCompressedThatNeedNoOther) {
  for (const char* const scheme : {"ps:async", "ps:ssp:2", "groups:2"}) {
    config::RunConfig config = served_config(scheme);
    for (const char* const one : {"bf16", "fp16", "int8", "onebit", "topk:0.01"}) {
      config.comm.compression = one;
      EXPECT_NO_THROW(server_settings(config)) << one;
    }
    for (const char* const summed : {"hitopk:0.01", "powersgd:2", "auto:int8"}) {
      config.comm.compression = summed;
      EXPECT_THROW(server_settings(config), ConfigError) << summed;
    }
  }
  config::RunConfig together = served_config("ps:sync");
  together.comm.compression = "powersgd:2";
  EXPECT_NO_THROW(server_settings(together)) << "it is the step";
}

TEST(DelayCompensation, IsTheGuessOfAGradientAtTheNewWeights) {
  const std::array<float, 4> now{9, 3, 2, 5}, then{9, 1, 4, 5}, g{7, 2, 3, 0};
  std::array<float, 3> out{};
  sync::compensate({.lambda = 0.5F,
                    .now = reinterpret_cast<const std::byte*>(now.data()),
                    .then = reinterpret_cast<const std::byte*>(then.data())},
                   sizeof(float), g.data() + 1, out);
  EXPECT_FLOAT_EQ(out[0], 2 + 0.5F * 4 * 2);
  EXPECT_FLOAT_EQ(out[1], 3 - 0.5F * 9 * 2);
  EXPECT_FLOAT_EQ(out[2], 0);
}

}  // namespace
}  // namespace tutti::train
