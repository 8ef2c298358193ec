#include "tutti/cli/config/config_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/cli/config/workload_library.h"
#include "tutti/keep/run_folder.h"

namespace tutti::cli {

namespace {

constexpr const char* kGroup = "Configuration";
constexpr const char* kLog = "Log";
constexpr const char* kLogLevel = "log-level";

std::string value_name(const config::ConfigKey& row) {
  if (!row.choices.empty()) return "";  // help shows the choices
  return row.type == config::ConfigType::integer ? "N"
         : row.type == config::ConfigType::real  ? "X"
         : row.name.ends_with("dir")             ? "DIR"
                                                 : "TEXT";
}

Flag short_flag(const ConfigAlias& alias, std::string& text) {
  const config::ConfigKey& row = *config::find_config_key(alias.key);
  Flag flag{.names = "--" + alias.flag,
            .value = value_name(row),
            .help = row.help,
            .bind = &text,
            .choices = row.choices,
            .kind = row.name.ends_with("dir") ? Names::folder : Names::nothing,
            .group = kGroup,
            .key = row.name};
  if (alias.flag == "resume") {
    flag.value = "DIR";
    flag.help =
        "Continue from the newest valid checkpoint in DIR; without DIR, or with `latest`, from "
        "that of the output folder";
    flag.kind = Names::folder;
    flag.alone = "latest";
  }
  return flag;
}

const char* const kDeviceKey = "run.device";
const Setting kGpu{kDeviceKey, "cuda", "--gpu"};

/// Returns --gpu, which stands for --device cuda.
Flag gpu_flag(bool& gpu, const std::string& group) {
  return {.names = kGpu.where,
          .help = "Compute on an NVIDIA GPU, as --device cuda",
          .bind = &gpu,
          .group = group,
          .key = kDeviceKey,
          .excludes = {"--device"}};
}

}  // namespace

Flag ConfigFlags::file_argument(const std::string& verb, bool required) {
  return {.names = "FILE",
          .help = "Configuration file (TOML). docs/configuration.md describes every key",
          .bind = &file_,
          .kind = Names::file,
          .required = required ? fmt::format("{} needs a configuration file, for example: tutti {} "
                                             "examples/lattices_resnet.toml",
                                             verb, verb)
                               : ""};
}

std::vector<Flag> ConfigFlags::flags(const std::vector<std::string_view>& short_flags) {
  const std::vector<ConfigAlias>& known = config_aliases();
  for (const std::string_view name : short_flags)
    CHECK(std::ranges::any_of(known, [&](const ConfigAlias& alias) { return alias.flag == name; }),
          "there is no short flag '{}'", name);
  std::vector<Flag> found;
  for (const ConfigAlias& alias : known) {
    if (std::ranges::find(short_flags, alias.flag) == short_flags.end()) continue;
    found.push_back(short_flag(alias, values_[alias.flag]));
    if (alias.flag == "profile") found.back().bind = &profile_;
    if (alias.flag == "check-collectives") found.back().bind = &check_;
    if (alias.key == kDeviceKey) found.push_back(gpu_flag(gpu_, kGroup));
    if (alias.flag == "slow") {
      found.back().value = "RANK:FACTOR";
      found.back().help += "; may be repeated";
      found.back().bind = &slow_;
    }
  }
  found.push_back({.names = "--set",
                   .value = "KEY=VALUE",
                   .help = "Set any key; may be repeated. --optimizer.lr=0.1 is the same as --set "
                           "optimizer.lr=0.1",
                   .bind = &sets_,
                   .kind = Names::setting,
                   .group = kGroup});
  found.push_back({.names = "-v,--verbose",
                   .help = "Log more; -vv still more",
                   .bind = Counts{&verbose_},
                   .group = kLog});
  found.push_back({.names = "-q,--quiet",
                   .help = "Log warnings and errors only",
                   .bind = &quiet_,
                   .group = kLog});
  const ConfigAlias level{kLogLevel, "run.log_level"};
  found.push_back(short_flag(level, values_[level.flag]));
  found.back().group = kLog;
  return found;
}

std::vector<Flag> ConfigFlags::flags_of_training() {
  std::vector<std::string_view> all;
  for (const ConfigAlias& alias : config_aliases())
    if (alias.flag != kLogLevel) all.push_back(alias.flag);  // every verb has that one
  return flags(all);
}

std::vector<Setting> ConfigFlags::settings() const {
  std::vector<Setting> found;
  if (quiet_) found.push_back({"run.log_level", "warn", "-q"});
  if (verbose_ > 0) found.push_back({"run.log_level", verbose_ > 1 ? "trace" : "debug", "-v"});
  if (profile_) found.push_back({"run.profile", "true", "--profile"});
  if (check_) found.push_back({"comm.check", "true", "--check-collectives"});
  if (gpu_) found.push_back(kGpu);
  if (!slow_.empty()) found.push_back({"run.slow", config::to_toml(slow_), "--slow"});
  for (const ConfigAlias& alias : config_aliases())
    if (const auto value = values_.find(alias.flag); value != values_.end() && value->second != "")
      found.push_back({alias.key, value->second, "--" + alias.flag});
  for (const std::string& set : sets_) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos)
      throw ConfigError(fmt::format("--set {}: write it as --set KEY=VALUE", set));
    const bool own_flag = set.starts_with("--");  // --optimizer.lr=0.1
    const std::string key = own_flag ? set.substr(2, equals - 2) : set.substr(0, equals),
                      where = own_flag ? "--" + key : "--set " + key;
    // -q and -v are less specific than --set; a flag of its own is equivalent to --set, and neither
    // has precedence.
    for (const Setting& other : found)
      if (other.key == key && other.where.starts_with("--") && !other.where.starts_with("--set") &&
          other.where != "--" + key)
        throw ConfigError(fmt::format("{} and {} set the same key: give one", other.where, where));
    found.push_back({key, set.substr(equals + 1), where});
  }
  return found;
}

std::vector<Flag> DeviceFlags::flags() {
  Flag device = short_flag({"device", kDeviceKey}, device_);
  device.group.clear();
  device.variable = variable_name("device");
  return {device, gpu_flag(gpu_, "")};
}

std::vector<Setting> DeviceFlags::settings() const {
  if (gpu_) return {kGpu};
  if (device_.empty()) return {};
  return {{kDeviceKey, device_, "--device"}};
}

Flag ranks_flag(int& ranks) {
  return {.names = "--ranks",
          .value = "N",
          .help =
              "Processes that compute together. Outside a launcher they are started on this "
              "machine with mpirun",
          .bind = &ranks,
          .least = 1,
          .greatest = 1 << 20,
          .variable = "TUTTI_RANKS"};
}

Flag json_flag(bool& json) {
  return {.names = "--json", .help = "Print JSON for programs", .bind = &json};
}

ResolvedConfig ConfigFlags::look() const {
  ResolvedConfig resolved = read_config({file_, tutti_environment(), settings()});
  check_old_places(resolved);
  return resolved;
}

ResolvedConfig ConfigFlags::read() const {
  ResolvedConfig resolved = look();
  load_library(resolved.config.model);
  return resolved;
}

ResolvedConfig ConfigFlags::read_run() const {
  ResolvedConfig resolved = read();
  std::string& directory = resolved.config.run.output_dir;
  std::string& origin = resolved.origins["run.output_dir"];
  const bool left_open = directory.empty() && (origin.empty() || origin.starts_with(file_ + ":"));
  if (left_open) directory = keep::folder_of_config(file_);
  if (left_open && !directory.empty()) origin = "the folder of " + file_;
  if (origin.empty()) resolved.origins.erase("run.output_dir");
  return resolved;
}

}  // namespace tutti::cli
