// tutti study: runs the same training at several scales, and reports how much faster it runs and
// learns.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/number.h"
#include "tutti/base/shell.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/flags/terminal.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/job/machine_file.h"
#include "tutti/cli/verbs/study_refusals.h"
#include "tutti/cli/verbs/study_schemes.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/config/run_settings.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/study/comparison.h"
#include "tutti/study/study.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/replay_check.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

struct StudyVerb {
  ConfigFlags flags;
  study::StudyFlags study;
  std::string mode = "weak";
  std::string sizes;  // empty: 1,2, and for a replay 1
  std::string replicas, schemes;
  std::string compare;
};

/// The contents of the file that replay.machine names: the file may change under the same name.
constexpr const char* kMachineContent = "the machine of replay.machine";

study::Configuration settings_in_file(const std::string& path) {
  const config::RunConfig config = read_config({path, {}, {}}).config;
  study::Configuration settings = config::run_settings(config);
  if (config.replay.machine.empty()) return settings;
  const auto record = std::filesystem::path(path).parent_path() / trace::kRecordFile;
  try {
    settings[kMachineContent] = trace::read_run(record.string()).start.replayed_on;
  } catch (const IoError&) {  // it is not known, so it counts as different
  }
  return settings;
}

/// Returns the same for a future run.
study::Configuration settings_now(const config::RunConfig& config) {
  study::Configuration settings = config::run_settings(config);
  if (!config.replay.machine.empty())
    settings[kMachineContent] = read_machine(config.replay.machine).label();
  return settings;
}

/// True for keys that the study sets itself for every run; a given value is the study's own base,
/// not the runs'.
bool set_by_study(std::string_view key) {
  return key == "run.output_dir" || key == "run.seed" || key == "run.threads" ||
         key == "batch.local" || key == "batch.global" || key == "checkpoint.resume" ||
         key == "parallel.spatial";
}

/// Decides as for a resume: a run that may go on is checked by training in the same way.
study::OnChange change_rule(const std::string& key) {
  if (key == kMachineContent) return study::OnChange::may_go_on;
  const config::ConfigKey* row = config::find_config_key(key);
  if (row && row->on_resume == config::OnResume::no_matter) return study::OnChange::no_matter;
  if (row && row->on_resume == config::OnResume::may_change) return study::OnChange::may_go_on;
  return study::OnChange::begins_anew;
}

/// Returns the flags of the configuration, with the differences between a study and one run.
std::vector<Flag> configuration_flags(StudyVerb& verb) {
  std::vector<Flag> flags =
      verb.flags.flags({"data-dir", "output-dir", "batch-size", "global-batch-size", "epochs",
                        "max-steps", "lr", "seed", "precision", "device", "target", "threads",
                        "machine", "slow", "slow-sigma", "profile", "check-collectives"});
  for (Flag& flag : flags)
    if (flag.names == "--output-dir")
      flag.help =
          "Folder of this study's report, tables and runs. Without it: run.output_dir of the file, "
          "else study";
  return flags;
}

/// Returns the goal; the learning task may follow only from the fields of the data set.
train::Goal goal_of_study(config::RunConfig config) {
  if (auto goal = train::goal_of(config)) return *goal;
  config.data.generate_when_read = true;
  return train::goal_of(config, train::model_spec(config, *open_configured(config, "train"), 1));
}

int run_comparison(const StudyVerb& verb) {
  if (!verb.flags.file().empty())
    throw ConfigError(
        "tutti study --compare reads studies that have run, and no configuration: leave CONFIG "
        "out");
  study::ComparisonFlags flags{.directories = split_list(verb.compare)};
  flags.json = verb.study.json;
  flags.command = shell_line(own_command());
  flags.read_resolved = settings_in_file;
  flags.change_rule = change_rule;
  const std::string folder = verb.flags.read().config.run.output_dir;
  if (!folder.empty()) flags.output_dir = folder;
  return study::compare_studies(flags);
}

/// Sets the sizes of the study: ranks, or with --replicas how many of them are replayed.
void take_sizes(const StudyVerb& verb, const config::RunConfig& config, study::StudyFlags& flags) {
  // Without a machine one number sets run.replicas, on all these ranks.
  int64_t number = 0;
  const bool fixed = config.replay.machine.empty() && read_number(verb.replicas, number);
  if (fixed) {
    flags.replicas = number;
    flags.sets.push_back(fmt::format("run.replicas={}", number));
  }
  if (verb.replicas.empty() || fixed) {
    if (!config.replay.machine.empty() && !flags.collect_only)
      throw ConfigError(
          "a study of a replay takes --replicas, as in --replicas 1,4,16: without it leave "
          "--machine out");
    flags.ranks =
        study::parse_sizes(verb.sizes.empty() ? "1,2" : verb.sizes, config.parallel.spatial);
    return;
  }
  if (config.replay.machine.empty())
    throw ConfigError(
        "--replicas N,N,... replays as many replicas on a machine, whose times are compared: name "
        "it with --machine FILE; real ranks are compared with --ranks");
  (void)read_machine(config.replay.machine);
  try {
    flags.ranks = study::parse_sizes(verb.replicas, {});
  } catch (const ConfigError&) {
    throw ConfigError(
        fmt::format("--replicas '{}' is no list of numbers of replicas, as 1,4,16", verb.replicas));
  }
  const auto ranks = study::parse_sizes(verb.sizes.empty() ? "1" : verb.sizes, {});
  if (ranks.size() != 1 || ranks.front().parts() != 1)
    throw ConfigError("--ranks of a replay is one number: on how many ranks each run is replayed");
  flags.replay_ranks = ranks.front().ranks;
  for (const study::Size& size : flags.ranks)
    if (size.ranks < flags.replay_ranks)
      throw ConfigError(fmt::format("--replicas {} are fewer than the {} ranks that replay them",
                                    size.ranks, flags.replay_ranks));
}

/// Returns the configuration of a study's runs, with these settings ("KEY=VALUE") in addition.
ResolvedConfig read_with(const StudyVerb& verb, const std::vector<std::string>& sets) {
  std::vector<Setting> settings = verb.flags.settings();
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    settings.push_back({set.substr(0, equals), set.substr(equals + 1), "tutti study"});
  }
  return read_config({verb.flags.file(), tutti_environment(), settings});
}

/// Takes the values that a study shows of the configuration of its runs.
void take_configuration(const config::RunConfig& config, study::StudyFlags& flags) {
  flags.epochs = config.run.epochs;
  flags.seed = static_cast<uint64_t>(config.run.seed);
  flags.local_batch = config.batch.local;
  flags.global_batch = config.batch.global;
  flags.accumulate = config.batch.accumulate;
  flags.threads_per_rank = static_cast<int>(config.run.threads);
  flags.target = goal_of_study(config).in_record();
}

/// Returns the configuration's idle keys without those that one of the schemes uses.
std::vector<std::string> idle_in_all_schemes(const StudyVerb& verb,
                                             const std::vector<std::string>& own) {
  std::vector<std::string> left = own;
  for (const SchemeOfStudy& choice : parse_schemes(verb.schemes, set_by_study)) {
    const std::vector<std::string> its = read_with(verb, choice.sets).idle;
    std::erase_if(left, [&its](const std::string& warning) {
      const size_t key = warning.find(" has no effect");  // the text after it names the scheme
      return key != std::string::npos && std::ranges::none_of(its, [&](const std::string& one) {
               return one.starts_with(warning.substr(0, key));
             });
    });
  }
  return left;
}

/// Runs a study for each scheme, and compares their curves.
int run_schemes(const StudyVerb& verb, const study::StudyFlags& flags) {
  std::vector<study::StudyFlags> studies;
  for (const SchemeOfStudy& choice : parse_schemes(verb.schemes, set_by_study)) {
    study::StudyFlags own = flags;
    own.sets.insert(own.sets.end(), choice.sets.begin(), choice.sets.end());
    // Checks now, and not hours later when this study begins.
    const config::RunConfig config = read_with(verb, own.sets).config;
    refuse_groups(config);
    if (!flags.collect_only) {
      train::check_replay(config);
      check_device_sizes(config, own);
      check_served_sizes(config, own);
    }
    take_configuration(config, own);
    own.output_dir += "/" + choice.folder;
    studies.push_back(std::move(own));
  }
  study::ComparisonFlags all{.directories = {}};
  for (const study::StudyFlags& own : studies) all.directories.push_back(own.output_dir);
  all.read_resolved = settings_in_file;
  all.change_rule = change_rule;
  if (!flags.collect_only && !flags.fresh && !flags.dry_run) {
    for (const study::StudyFlags& own : studies) study::check_finished(own);
    if (!flags.quiet) study::show_finished(all);
  }
  if (!flags.collect_only) study::count_runs_after(studies);
  int code = 0;
  for (const study::StudyFlags& own : studies) {
    const int one = study::run_study(own);
    constexpr int kSignalled = 128;  // plus the signal's number
    if (one == static_cast<int>(ExitCode::requeue) || one > kSignalled) return one;
    if (one != 0) code = one;
  }
  if (studies.size() == 1 || flags.dry_run) return code;
  all.json = flags.json;
  all.output_dir = flags.output_dir;
  all.command = flags.command;
  const int compared = study::compare_studies(all);
  return code ? code : compared;
}

int run_study_verb(const StudyVerb& verb) {
  if (!verb.compare.empty()) return run_comparison(verb);
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
  ResolvedConfig resolved = verb.flags.read();
  const config::RunConfig& config = resolved.config;
  refuse_shared(resolved);
  flags.replicas = verb.replicas.empty() ? config.run.replicas : 0;
  refuse_groups(config);
  take_sizes(verb, config, flags);
  const device::Topology topology = device::read_topology();
  // Checks now, and not hours later when this size begins.
  if (!flags.collect_only)
    check_threads_per_core(static_cast<int>(config.run.threads), flags.oversubscribe, topology);
  if (!flags.collect_only)
    for (const study::Size& size : flags.ranks)
      check_ranks_per_core(flags.replay_ranks > 0 ? flags.replay_ranks : size.ranks,
                           flags.oversubscribe, topology);
  log::configure(config.run.log_level, 0, 1);
  if (!verb.schemes.empty()) resolved.idle = idle_in_all_schemes(verb, resolved.idle);
  for (const std::string& warning : resolved.warnings_of_training()) log::warn("{}", warning);
  if (!config.run.output_dir.empty()) flags.output_dir = config.run.output_dir;
  flags.command = shell_line(own_command());
  flags.verbose = config.run.log_level > log::Level::info;
  flags.quiet = config.run.log_level < log::Level::info;
  const Terminal terminal = terminal_of(STDERR_FILENO);
  flags.columns = terminal.erases ? terminal.columns : 0;
  flags.resolve = [&verb](const std::vector<std::string>& sets) {
    return settings_now(read_with(verb, sets).config);
  };
  flags.read_resolved = settings_in_file;
  flags.change_rule = change_rule;
  flags.has_sound_checkpoint = [](const std::string& directory) {
    return keep::find_latest_valid(keep::checkpoints_in(directory)).has_value();
  };
  flags.cores = cores_for_ranks(topology);
  if (!flags.collect_only) train::check_replay(config);
  if (!verb.schemes.empty()) return run_schemes(verb, flags);
  if (!flags.collect_only) {
    check_device_sizes(config, flags);
    check_served_sizes(config, flags);
  }
  take_configuration(config, flags);
  return study::run_study(flags);
}

}  // namespace

Verb study_verb() {
  auto state = std::make_shared<StudyVerb>();  // shared: std::function must be copyable
  return {
      .name = "study",
      .summary = "Train at several scales and report how much faster it runs and learns",
      .text =
          "Starts the ranks of each run itself: start the study once, inside the allocation. "
          "Runs that are finished are kept when it is started again.",
      .arguments = {state->flags.file_argument("study", false)},
      .flags = joined(
          {flag("--ranks", "N,N/P,...",
                "Numbers of ranks, separated by commas. 4/2 are 4 ranks of which 2 "
                "share each sample, 4/2x2 share its first two dimensions",
                &state->sizes),
           flag("--replicas", "N,N,...",
                "Numbers of replicas to replay on the machine of --machine, each on a "
                "device; --ranks then is the one number of ranks that do it. Without "
                "--machine one number: run.replicas",
                &state->replicas),
           flag("--sync", "SCHEME,...",
                "How replicas meet, see sync.scheme: a study for each, and a report of "
                "all beside each other. Keys for the runs of one scheme may follow it "
                "('step,ps:async optimizer.momentum=0')",
                &state->schemes),
           flag("--repeats", "N", "Runs of each rank count; repeat k has seed run.seed + k - 1",
                &state->study.repeats, {1, 1000}),
           choice_flag("--mode", "weak: the batch of a rank stays; strong: the global batch stays",
                       &state->mode, {"weak", "strong"}),
           flag("--run-limit", "SECONDS", "End a run after this many seconds. 0: never",
                &state->study.run_limit_seconds, {0}),
           switch_flag("--fresh",
                       "Run everything again; all earlier runs in the folder are set aside",
                       &state->study.fresh),
           switch_flag("--oversubscribe",
                       "Start more than 8 ranks or threads for each core, if that is asked for",
                       &state->study.oversubscribe),
           switch_flag("--dry-run", "Print the command of each run, and end",
                       &state->study.dry_run),
           switch_flag("--require-target",
                       "Exit code 3 when a run missed run.target; without it that is a result "
                       "like others",
                       &state->study.require_target),
           switch_flag("--collect", "Run nothing: report every record found under --output-dir",
                       &state->study.collect_only),
           flag("--compare", "FOLDER,...",
                "Run nothing: show the curves of these studies beside each other, in "
                "studies.html of --output-dir (without it: studies)",
                &state->compare),
           json_flag(state->study.json)},
          configuration_flags(*state)),
      .examples =
          {{"tutti study run.toml --ranks 1,2,4 --repeats 3",
            "Compare 1, 2 and 4 ranks, each with three seeds"},
           {"tutti study run.toml --ranks 1,2 --mode strong --output-dir studies/strong",
            "Share one global batch among the ranks"},
           {"tutti study run.toml --ranks 1,2,2/2",
            "Two ranks with samples of their own, and two that share each"},
           {"tutti study run.toml --machine fat_tree.toml --replicas 1,4,16 --sync step,local:4",
            "Replay more replicas than there are ranks, by two schemes"},
           {"tutti study run.toml --dry-run", "See the commands it would run"},
           {"tutti study --collect --output-dir studies/strong",
            "Write the report again from the records that are there"},
           {"tutti study --compare studies/protein,studies/cbed --output-dir studies/all",
            "One report of several studies"}},
      .see_also = {"tutti help train", "docs/record.md"},
      .run = [state] {
        give_back_output();  // it prints by itself, and its runs are other processes
        return run_study_verb(*state);
      }};
}

}  // namespace tutti::cli
