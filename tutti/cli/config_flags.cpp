#include "tutti/cli/config_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "tutti/base/error.h"

namespace tutti {

namespace {

std::string placeholder(const ConfigKey& row) {
  if (!row.choices.empty()) return fmt::format("{}", fmt::join(row.choices, "|"));
  return row.type == ConfigType::integer ? "N"
         : row.type == ConfigType::real  ? "X"
         : row.name.ends_with("dir")     ? "DIR"
                                         : "TEXT";
}

}  // namespace

void ConfigFlags::add_to(CLI::App& verb, bool file_required) {
  verb.add_option("config,--config", file_, "Configuration file (TOML); see docs/configuration.md")
      ->type_name("FILE")
      ->required(file_required);
  verb.add_option("--set", sets_,
                  "Set any key, repeatable: --set optimizer.lr=0.1, or --optimizer.lr=0.1")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false)
      ->group("Configuration");
  for (const ConfigAlias& alias : config_aliases()) {
    const ConfigKey& row = *find_config_key(alias.key);
    if (row.type == ConfigType::boolean) continue;
    verb.add_option_function<std::string>(
            "--" + alias.flag,
            [this, flag = alias.flag](const std::string& text) { values_[flag] = text; },
            fmt::format("{} [{}]", row.help, row.name))
        ->type_name(placeholder(row))
        ->group("Configuration");
  }
  verb.add_flag("--profile", profile_, find_config_key("run.profile")->help + " [run.profile]")
      ->group("Configuration");
  verb.add_flag("--check-collectives", check_,
                find_config_key("comm.check")->help + " [comm.check]")
      ->group("Configuration");
  verb.add_flag("-v,--verbose", verbose_, "Log more; -vv still more")->group("Configuration");
  verb.add_flag("-q,--quiet", quiet_, "Log warnings and errors only")->group("Configuration");
}

std::vector<Setting> ConfigFlags::settings() const {
  std::vector<Setting> found;
  if (quiet_) found.push_back({"run.log_level", "warn", "-q"});
  if (verbose_ > 0) found.push_back({"run.log_level", verbose_ > 1 ? "trace" : "debug", "-v"});
  if (profile_) found.push_back({"run.profile", "true", "--profile"});
  if (check_) found.push_back({"comm.check", "true", "--check-collectives"});
  for (const ConfigAlias& alias : config_aliases())
    if (const auto value = values_.find(alias.flag); value != values_.end())
      found.push_back({alias.key, value->second, "--" + alias.flag});
  for (const std::string& set : sets_) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos)
      throw ConfigError(fmt::format("--set {}: write it as --set KEY=VALUE", set));
    found.push_back(
        {set.substr(0, equals), set.substr(equals + 1), "--set " + set.substr(0, equals)});
  }
  return found;
}

void add_ranks_flag(CLI::App& verb, int& ranks) {
  verb.add_option("--ranks", ranks,
                  "Processes that train together; outside a launcher they are started on this node "
                  "with mpirun")
      ->type_name("N")
      ->envname("TUTTI_RANKS")
      ->check([](const std::string& text) -> std::string {
        int count = 0;
        const char* end = text.data() + text.size();
        const auto [rest, failed] = std::from_chars(text.data(), end, count);
        if (failed == std::errc() && rest == end && count >= 1 && count <= 1 << 20) return "";
        return fmt::format("must be a whole number from 1 to {}, is '{}'", 1 << 20, text);
      });
}

ResolvedConfig ConfigFlags::read() const {
  return read_config({file_, tutti_environment(), settings()});
}

}  // namespace tutti
