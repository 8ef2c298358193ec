// tutti study: the same training at several scales, and how much faster it runs and learns.

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/config_flags.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/terminal.h"
#include "tutti/cli/verbs.h"
#include "tutti/study/study.h"

namespace tutti {
namespace {

struct StudyVerb {
  ConfigFlags flags;
  study::StudyFlags study;
  std::string mode = "weak";
};

/// What the study sets itself for every run; the value given is its own base, not the runs'.
bool set_by_study(std::string_view key) {
  return key == "run.output_dir" || key == "run.seed" || key == "run.threads" ||
         key == "batch.local" || key == "batch.global" || key == "checkpoint.resume";
}

study::Configuration values_of(const ResolvedConfig& resolved) {
  study::Configuration values;
  for (const ConfigKey& row : config_keys()) values[row.name] = to_toml(row.get(resolved.config));
  return values;
}

/// Keys that would make the runs of a study share what must be each one's own.
void refuse_shared(const ResolvedConfig& resolved) {
  const auto refuse = [&](const char* key, const std::string& value, const char* reason) {
    if (value.empty()) return;
    const auto origin = resolved.origins.find(key);
    throw ConfigError(fmt::format("{}: {} = \"{}\", but {}: leave the key out",
                                  origin == resolved.origins.end() ? "study" : origin->second, key,
                                  value, reason));
  };
  refuse("checkpoint.resume", resolved.config.checkpoint.resume,
         "the runs of a study begin at the beginning, and go on by themselves when the study is "
         "started again");
  refuse("checkpoint.dir", resolved.config.checkpoint.dir,
         "each run of a study keeps its checkpoints in its own folder");
}

int run_study_verb(const StudyVerb& verb) {
  if (const comm::Launcher launcher = read_launcher(); launcher.size > 1)
    throw ConfigError(
        fmt::format("tutti study starts the ranks itself, but runs under {}: start it once, inside "
                    "the allocation",
                    launcher.to_string()));
  study::StudyFlags flags = verb.study;
  flags.mode = study::parse_mode(verb.mode);
  flags.config = verb.flags.file();
  flags.program = own_command().front();
  for (const Setting& setting : verb.flags.settings()) {
    if (!set_by_study(setting.key)) flags.sets.push_back(setting.key + "=" + setting.text);
  }
  const ResolvedConfig resolved = verb.flags.read();
  const RunConfig& config = resolved.config;
  refuse_shared(resolved);
  log::configure(config.run.log_level, 0, 1);
  for (const std::string& warning : resolved.warnings) log::warn("{}", warning);
  if (resolved.origins.contains("run.output_dir")) flags.output_dir = config.run.output_dir;
  flags.command = study::shell_line(own_command());
  flags.verbose = config.run.log_level > log::Level::info;
  flags.quiet = config.run.log_level < log::Level::info;
  const Terminal terminal = terminal_of(STDERR_FILENO);
  flags.columns = terminal.erases ? terminal.columns : 0;
  flags.epochs = config.run.epochs;
  flags.resolve = [&verb](const std::vector<std::string>& sets) {
    std::vector<Setting> settings = verb.flags.settings();
    for (const std::string& set : sets) {
      const size_t equals = set.find('=');
      settings.push_back({set.substr(0, equals), set.substr(equals + 1), "tutti study"});
    }
    return values_of(read_config({verb.flags.file(), tutti_environment(), settings}));
  };
  flags.read_resolved = [](const std::string& path) {
    return values_of(read_config({path, {}, {}}));
  };
  flags.seed = static_cast<uint64_t>(config.run.seed);
  flags.local_batch = config.batch.local;
  flags.global_batch = config.batch.global;
  flags.replicas = config.run.replicas;
  flags.threads_per_rank = static_cast<int>(config.run.threads);
  flags.cores = read_topology().usable_cores();
  if (config.run.target > 0)
    flags.target =
        Target{.metric = "accuracy", .value = config.run.target, .higher_is_better = true};
  return study::run_study(flags);
}

}  // namespace

RunVerb add_study(CLI::App& verb) {
  auto state = std::make_shared<StudyVerb>();  // shared: std::function must be copyable
  state->flags.add_to(verb, false);
  verb.add_option("--ranks", state->study.ranks, "Rank counts, separated by commas")
      ->type_name("N,N,...")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb.add_option("--repeats", state->study.repeats,
                  "Runs of each rank count; repeat k has seed run.seed + k - 1")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb.add_option("--mode", state->mode,
                  "weak: the batch of a rank stays; strong: the global batch stays")
      ->check(CLI::IsMember({"weak", "strong"}))
      ->capture_default_str();
  verb.add_option("--run-limit", state->study.run_limit_seconds,
                  "End a run after this many seconds; 0: never")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber);
  verb.add_flag("--fresh", state->study.fresh,
                "Run finished runs again; the earlier ones are kept aside");
  verb.add_flag("--dry-run", state->study.dry_run, "Print the command of each run, and end");
  verb.add_flag(
      "--require-target", state->study.require_target,
      "Exit code 3 when a run missed run.target; without it that is a result like others");
  verb.add_flag("--collect", state->study.collect_only,
                "Run nothing: report every record found under --output-dir");
  return [state] { return run_study_verb(*state); };
}

}  // namespace tutti
