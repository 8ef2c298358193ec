// tutti study: the same training at several scales, and how much faster it runs and learns.

#include <fmt/format.h>

#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/config_flags.h"
#include "tutti/cli/launch.h"
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
    if (setting.key == "run.output_dir") flags.output_dir = setting.text;
    if (setting.key == "checkpoint.resume")
      throw ConfigError(setting.where + ": the runs of a study begin at the beginning");
    if (!set_by_study(setting.key)) flags.sets.push_back(setting.key + "=" + setting.text);
  }
  const ResolvedConfig resolved = verb.flags.read();
  const RunConfig& config = resolved.config;
  log::configure(config.run.log_level, 0, 1);
  for (const std::string& warning : resolved.warnings) log::warn("{}", warning);
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
  verb.add_flag("--collect", state->study.collect_only,
                "Run nothing: report every record found under --output-dir");
  return [state] { return run_study_verb(*state); };
}

}  // namespace tutti
