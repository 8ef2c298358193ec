#include "tutti/train/settings/resume_check.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::train {
namespace {

config::RunSettings settings_on(const std::string& data, const config::RunConfig& config = {}) {
  config::RunSettings settings = config::run_settings(config);
  settings[kDataContent] = data;
  return settings;
}

/// Resumes a run with the defaults on "some images" with the settings `now`.
struct Resume {
  config::RunConfig now{};
  std::string data = "some images";
  std::vector<std::string> anyway{};

  std::vector<std::string> changes() const {
    keep::CheckpointInfo before;
    before.settings = settings_on("some images");
    return check_resume("there/step_0000008", before, settings_on(data, now), anyway);
  }
  std::string refusal() const {
    return message_of<ConfigError>("", [&] { changes(); });
  }
};

TEST(ResumeCheck, WhatChangesResultsIsRefusedWithKeyValuesAndWaysOut) {
  EXPECT_EQ(Resume{}.refusal(), "");
  Resume resume;
  resume.now.optimizer.lr = 0.05;
  resume.now.data.transforms = {"image: flip x"};
  EXPECT_EQ(
      resume.refusal(),
      "checkpoint 'there/step_0000008' is of a run whose results would not go on as they were: "
      "data.transforms was [] and is now [\"image: flip x\"]; optimizer.lr was 0.1 and is now "
      "0.05; give the old values, or go on with the new with --resume-anyway data.transforms "
      "--resume-anyway optimizer.lr");
  resume.anyway = {"optimizer.lr", "data.transforms"};
  EXPECT_EQ(resume.changes(),
            (std::vector<std::string>{"data.transforms: [] -> [\"image: flip x\"]",
                                      "optimizer.lr: 0.1 -> 0.05"}));
}

TEST(ResumeCheck, AnotherOrderOfTheSamplesIsRefusedWithTheReason) {
  keep::CheckpointInfo before;  // from a version that did not name its order
  before.settings = settings_on("some images");
  config::RunSettings now = settings_on("some images");
  now[kDataOrder] = "swap-or-not";
  EXPECT_TRUE(throws<ConfigError>(
      {"data.order was a stored permutation, as in versions before the order was computed and is "
       "now swap-or-not; give the old value; this version has one order, so a run with the old one "
       "ends with the version that began it, or go on with the new with --resume-anyway "
       "data.order"},
      [&] { check_resume("there/step_0000008", before, now, {}); }));
  EXPECT_EQ(check_resume("there/step_0000008", before, now, {"data.order"}).size(), 1u);
  before.settings[kDataOrder] = "swap-or-not";
  EXPECT_TRUE(check_resume("there/step_0000008", before, now, {}).empty());
  EXPECT_NO_THROW(check_resume_anyway({"data.order"}, "latest"));
}

TEST(ResumeCheck, WhatChangesNeitherResultsNorTimesIsNoNews) {
  Resume resume;
  resume.now.comm.timeout_s = 300;
  resume.now.checkpoint.keep = 7;
  resume.now.run.profile = true;
  EXPECT_EQ(resume.changes(), std::vector<std::string>{});
  resume.now.checkpoint.every_steps = 5;  // the clock runs on while one is written
  EXPECT_EQ(resume.changes(), std::vector<std::string>{"checkpoint.every_steps: 0 -> 5"});
}

TEST(ResumeCheck, EveryKeyIsEitherFixedOrMayChange) {
  for (const config::ConfigKey& row : config::config_keys()) {
    keep::CheckpointInfo before;
    before.settings = settings_on("");
    config::RunSettings here = before.settings;
    here.at(row.name) += "0";
    const auto check = [&](const std::vector<std::string>& anyway) {
      return check_resume("there", before, here, anyway);
    };
    if (row.on_resume == config::OnResume::fixed) {
      EXPECT_THROW(check({}), ConfigError) << row.name;
      EXPECT_NO_THROW(check({row.name})) << row.name;
    } else {
      EXPECT_NO_THROW(check({})) << row.name;
    }
  }
  for (const char* fixed :
       {"run.seed", "run.precision", "run.replicas", "data.dataset", "data.generate_seed",
        "model.name", "batch.global", "optimizer.name", "optimizer.momentum", "optimizer.nesterov",
        "optimizer.weight_decay", "schedule.name", "schedule.gamma", "loss.label_smoothing",
        "comm.compression", "comm.reproducible"})
    EXPECT_EQ(config::find_config_key(fixed)->on_resume, config::OnResume::fixed) << fixed;
  for (const char* free : {"run.epochs", "run.target", "run.eval_every", "run.log_every",
                           "run.threads", "data.dir", "checkpoint.every_steps", "comm.shape"})
    EXPECT_EQ(config::find_config_key(free)->on_resume, config::OnResume::may_change) << free;
}

TEST(ResumeCheck, OtherDataIsSaidOnce) {
  Resume resume;
  resume.data = "other images";
  EXPECT_TRUE(has_text(resume.refusal(), "data.content was some images and is now other images"));
  resume.now.data.generate_seed = 7;
  EXPECT_FALSE(has_text(resume.refusal(), "data.content"));
  resume.anyway = {"data.generate_seed"};
  EXPECT_EQ(resume.refusal(), "");
}

TEST(ResumeCheck, AChangedAugmentationDoesNotHideOtherImages) {
  Resume resume;
  resume.data = "other images";
  resume.now.data.transforms = {"image: flip x"};
  resume.anyway = {"data.transforms"};
  EXPECT_TRUE(has_text(resume.refusal(), "data.content was some images and is now other images"));
  resume.anyway = {"data.transforms", "data.content"};
  EXPECT_EQ(resume.refusal(), "");
}

TEST(ResumeCheck, ReplicasSayOnHowManyRanksTheyRun) {
  Resume resume;
  resume.now.run.replicas = 2;
  EXPECT_TRUE(has_text(resume.refusal(), "on any number of ranks from 1 to"));
}

TEST(ResumeCheck, AKeyOfALaterVersionHadItsDefault) {
  keep::CheckpointInfo before;
  before.settings = settings_on("");
  before.settings.erase("loss.label_smoothing");
  config::RunConfig now;
  EXPECT_NO_THROW(check_resume("there", before, settings_on("", now), {}));
  now.loss.label_smoothing = 0.1;
  EXPECT_THROW(check_resume("there", before, settings_on("", now), {}), ConfigError);
}

TEST(ResumeCheck, ACheckpointWithoutSettingsIsOfAnEarlierVersion) {
  EXPECT_THROW(check_resume("there", {}, settings_on(""), {}), ConfigError);
}

TEST(ResumeCheck, AQuorumIsOfAllReplicasOfTheRunBefore) {
  keep::CheckpointInfo before;
  before.replicas = 3;
  EXPECT_EQ(replicas_of(before), 3);
  before.settings["run.replicas"] = "4";
  EXPECT_EQ(replicas_of(before), 4);
}

TEST(ResumeCheck, AnywayNamesFixedKeys) {
  EXPECT_NO_THROW(check_resume_anyway({"optimizer.lr", "data.content"}, "latest"));
  EXPECT_NO_THROW(check_resume_anyway({kOrderMachine, kPlanChoices}, "latest"));
  EXPECT_THROW(check_resume_anyway({"optimizer.learning"}, "latest"), ConfigError);
  EXPECT_THROW(check_resume_anyway({"run.epochs"}, "latest"), ConfigError);
  EXPECT_THROW(check_resume_anyway({"optimizer.lr"}, ""), ConfigError) << "nothing is resumed";
  EXPECT_NO_THROW(check_resume_anyway({}, ""));
}

}  // namespace
}  // namespace tutti::train
