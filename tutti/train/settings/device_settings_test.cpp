#include "tutti/train/settings/device_settings.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/settings/validation.h"

namespace tutti::train {
namespace {

using config::DeviceKind;

/// Returns why a training with this change is refused; empty: it is not.
std::string refusal(DeviceKind device, int64_t ranks,
                    const std::function<void(config::RunConfig&)>& change = {}) {
  config::RunConfig config;
  config.run.device = device;
  if (change) change(config);
  return message_of<ConfigError>("", [&] { check_device(config, ranks); });
}

struct Unbuilt {
  std::string name;
  std::function<void(config::RunConfig&)> change;
};

std::vector<Unbuilt> not_built() {
  using Config = config::RunConfig;
  return {{"parallel.spatial",
           [](Config& c) {
             c.parallel.spatial = {1, 2};
           }},
          {"parallel.tensor", [](Config& c) { c.parallel.tensor = 2; }},
          {"parallel.pipeline", [](Config& c) { c.parallel.pipeline = 2; }},
          {"parallel.batchnorm_group_size", [](Config& c) { c.parallel.batchnorm_group_size = 2; }},
          {"sync.scheme = \"local:8\"", [](Config& c) { c.sync.scheme = "local:8"; }},
          {"sync.scheme = \"ps:async\"", [](Config& c) { c.sync.scheme = "ps:async"; }},
          {"comm.compression = \"int8\"", [](Config& c) { c.comm.compression = "int8"; }},
          {"comm.sharded_update", [](Config& c) { c.comm.sharded_update = true; }}};
}

TEST(DeviceSettings, WhatIsNotBuiltForDevicesIsRefusedByName) {
  for (const DeviceKind device : {DeviceKind::cuda, DeviceKind::emulated}) {
    EXPECT_EQ(refusal(device, 1), "");
    for (const Unbuilt& each : not_built())
      EXPECT_TRUE(has_text(
          refusal(device, 1, each.change),
          fmt::format("run.device = \"{}\" goes without {} so far", to_string(device), each.name)));
    EXPECT_TRUE(has_text(refusal(device, 2), "with one rank so far, not with 2"));
  }
  for (const Unbuilt& each : not_built())
    EXPECT_EQ(refusal(DeviceKind::cpu, 2, each.change), "") << each.name;
}

/// One rank may have them: parts of one are none, and several replicas meet in every step.
TEST(DeviceSettings, OneRankMayHaveSeveralReplicasAndPartsOfOne) {
  EXPECT_EQ(refusal(DeviceKind::cuda, 1,
                    [](config::RunConfig& c) {
                      c.run.replicas = 4;
                      c.run.threads = 8;
                      c.parallel.spatial = {1, 1};
                      c.batch.accumulate = 2;
                    }),
            "");
}

/// Weights that others trained are evaluated on a device, whatever the scheme of their training.
TEST(DeviceSettings, AnEvaluationAsksForOneRankAlone) {
  config::RunConfig config;
  config.run.device = DeviceKind::cuda;
  config.sync.scheme = "local:8";
  EXPECT_NO_THROW(validate(config));
  EXPECT_NO_THROW(check_device_ranks(config, 1));
  EXPECT_THROW(check_device_ranks(config, 2), ConfigError);
  config.run.device = DeviceKind::cpu;
  EXPECT_NO_THROW(check_device_ranks(config, 2));
}

TEST(DeviceSettings, APlanForADeviceIsOfOneThreadAndWholeTilesAndMeasuresNothing) {
  config::RunConfig config;
  config.run.threads = 8;
  config.plan.tile_bytes = 1000;
  config.plan.slabs = 3;
  EXPECT_EQ(split_settings(config).threads, 8);
  EXPECT_EQ(split_settings(config).tile_bytes, 1000u);
  EXPECT_TRUE(measures_kernels(config));
  config.run.device = DeviceKind::emulated;
  EXPECT_EQ(split_settings(config).threads, 1);
  EXPECT_EQ(split_settings(config).tile_bytes, 0u);
  EXPECT_EQ(split_settings(config).slabs, 3);
  EXPECT_FALSE(measures_kernels(config));
}

TEST(DeviceSettings, KernelsOfAnotherDeviceAreNotTaken) {
  config::RunConfig config;
  const config::RunSettings cpu = config::run_settings(config);
  EXPECT_EQ(choices_of_device("some", cpu, config), "some");
  EXPECT_EQ(choices_of_device("some", {}, config), "some") << "a checkpoint of earlier";
  config.run.device = DeviceKind::cuda;
  EXPECT_EQ(choices_of_device("some", cpu, config), "");
  EXPECT_EQ(choices_of_device("some", {}, config), "");
  EXPECT_EQ(choices_of_device("some", config::run_settings(config), config), "some");
  config::RunConfig emulated;
  emulated.run.device = DeviceKind::emulated;
  EXPECT_EQ(choices_of_device("some", config::run_settings(config), emulated), "");
}

/// On a device the key decides which kernels there are; the CPU has its own whatever it says.
TEST(DeviceSettings, KernelsOfAnotherHostKernelsAreNotTakenOnADevice) {
  config::RunConfig there, here;
  here.plan.host_kernels = true;
  EXPECT_EQ(choices_of_device("some", config::run_settings(there), here), "some");
  there.run.device = here.run.device = DeviceKind::emulated;
  EXPECT_EQ(choices_of_device("some", config::run_settings(there), here), "");
  EXPECT_EQ(choices_of_device("some", config::run_settings(here), here), "some");
}

TEST(DeviceSettings, ChoicesFromARunWithOtherKernelsAreRefused) {
  const ScratchDirectory scratch;
  config::RunConfig there, here;
  there.run.device = DeviceKind::cuda;
  const std::vector<std::byte> bytes(4);
  const keep::NamedTensor w{"w", {DType::f32, {1}, {}}, bytes};
  keep::CheckpointContent content;
  content.info.plan_choices = "problem\tkernel\n";
  content.info.settings = config::run_settings(there);
  content.weights = content.state = {w.ref()};
  here.plan.choices_from =
      keep::write_checkpoint(scratch.path() / "checkpoints", content, 0).string();
  const auto refusal = [&] { return message_of<ConfigError>("", [&] { choices_from(here); }); };
  EXPECT_EQ(refusal(),
            "plan.choices_from: that run computed on another device, whose kernels are not here: "
            "leave the key out");
  here.run.device = DeviceKind::cuda;
  EXPECT_EQ(choices_from(here), content.info.plan_choices);
  here.plan.host_kernels = true;
  EXPECT_TRUE(has_text(refusal(), "that run computed with another plan.host_kernels"));
}

}  // namespace
}  // namespace tutti::train
