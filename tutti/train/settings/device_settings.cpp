#include "tutti/train/settings/device_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/keep/checkpoint.h"

namespace tutti::train {
namespace {

/// Returns a key's value as TOML; runs of earlier versions lack new keys.
std::string setting_of(const config::RunSettings& settings, const std::string& key) {
  const auto at = settings.find(key);
  return at == settings.end()
             ? config::to_toml(config::find_config_key(key)->get(config::RunConfig{}))
             : at->second;
}

/// Whether the kernels that a run with these settings chose are offered here, too.
bool has_kernels_of(const config::RunSettings& settings, const config::RunConfig& config) {
  const config::RunSettings here = config::run_settings(config);
  if (device_of(settings) != device_of(here)) return false;
  constexpr const char* kHostKernels = "plan.host_kernels";
  return !on_device(config.run) ||
         setting_of(settings, kHostKernels) == setting_of(here, kHostKernels);
}

}  // namespace

bool on_device(const config::RunSection& run) { return run.device != config::DeviceKind::cpu; }

bool measures_kernels(const config::RunConfig& config) {
  return config.plan.measure && !on_device(config.run);
}

void check_device_ranks(const config::RunConfig& config, int64_t ranks) {
  if (on_device(config.run) && ranks > 1)
    throw ConfigError(fmt::format(
        "run.device = \"{}\" computes with one rank so far, not with {}: leave --ranks or the "
        "launcher out; run.replicas gives one rank several replicas",
        to_string(config.run.device), ranks));
}

void check_device(const config::RunConfig& config, int64_t ranks) {
  if (!on_device(config.run)) return;
  const auto refuse = [&](bool given, std::string_view what, std::string_view why) {
    if (given)
      throw ConfigError(fmt::format(
          "run.device = \"{}\" goes without {} so far: {}; leave it out, or take run.device = "
          "\"cpu\"",
          to_string(config.run.device), what, why));
  };
  constexpr std::string_view kOneRank = "a device has one rank, which has whole replicas";
  refuse(std::ranges::any_of(config.parallel.spatial, [](int64_t parts) { return parts > 1; }),
         "parallel.spatial", kOneRank);
  refuse(config.parallel.tensor > 1, "parallel.tensor", kOneRank);
  refuse(config.parallel.pipeline > 1, "parallel.pipeline", kOneRank);
  refuse(config.parallel.batchnorm_group_size > 1, "parallel.batchnorm_group_size", kOneRank);
  refuse(config.sync.scheme != config::SyncSection{}.scheme,
         fmt::format("sync.scheme = \"{}\"", config.sync.scheme),
         "replicas on a device meet in every step");
  refuse(config.comm.compression != config::CommSection{}.compression,
         fmt::format("comm.compression = \"{}\"", config.comm.compression),
         "gradients of a device are summed whole");
  refuse(config.comm.sharded_update, "comm.sharded_update",
         "a device has the whole state of the optimizer");
  check_device_ranks(config, ranks);
}

std::string device_of(const config::RunSettings& settings) {
  return setting_of(settings, "run.device");
}

std::string choices_of_device(const std::string& plan_choices, const config::RunSettings& settings,
                              const config::RunConfig& config) {
  return has_kernels_of(settings, config) ? plan_choices : "";
}

std::string choices_from(const config::RunConfig& config) {
  constexpr const char* kKey = "plan.choices_from";
  const keep::CheckpointInfo there =
      keep::verify_checkpoint(keep::checkpoint_at(config.plan.choices_from, kKey));
  if (has_kernels_of(there.settings, config)) return there.plan_choices;
  const bool same_device = device_of(there.settings) == device_of(config::run_settings(config));
  throw ConfigError(
      fmt::format("{}: that run computed {}, whose kernels are not here: leave the key out", kKey,
                  same_device ? "with another plan.host_kernels" : "on another device"));
}

}  // namespace tutti::train
