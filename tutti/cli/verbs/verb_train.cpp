// tutti train: one run.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/base/shell.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/config/config_text.h"
#include "tutti/cli/data/run_data_path.h"
#include "tutti/cli/data/run_tokenizer.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/flags/terminal.h"
#include "tutti/cli/flags/version.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/job/machine_file.h"
#include "tutti/cli/job/rank_table.h"
#include "tutti/cli/job/selection_file.h"
#include "tutti/cli/job/signals.h"
#include "tutti/cli/verbs/dry_run.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/comm/control/agree.h"
#include "tutti/config/run_settings.h"
#include "tutti/keep/run_folder.h"
#include "tutti/train/loop/rehearsal.h"
#include "tutti/train/loop/trainer.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/replay_check.h"
#include "tutti/train/settings/resume_check.h"

namespace tutti::cli {
namespace {

struct TrainVerb {
  ConfigFlags flags;
  int ranks = 0;
  bool oversubscribe = false;
  bool dry_run = false, fresh = false;
  bool replays = false;  ///< `tutti replay`
  bool json = false;
  std::vector<std::string> resume_anyway;
};

// Variables of Slurm, PBS, LSF, Flux, Grid Engine and HTCondor.
constexpr std::array kJobVariables = {"SLURM_JOB_ID", "PBS_JOBID",   "LSB_JOBID",
                                      "FLUX_JOB_ID",  "SGE_TASK_ID", "_CONDOR_SLOT"};

ExitCode exit_code(trace::RunStatus status) {
  switch (status) {
    case trace::RunStatus::done: return ExitCode::done;
    case trace::RunStatus::target_missed: return ExitCode::target_missed;
    case trace::RunStatus::requeue: return ExitCode::requeue;
    case trace::RunStatus::failed: break;
  }
  return ExitCode::failure;
}

/// Refuses, before anything is done, a run whose config.toml could not be read back: TOML is UTF-8.
void refuse_other_bytes(const config::RunConfig& config) {
  for (const config::ConfigKey& row : config::config_keys()) {
    const config::ConfigValue value = row.get(config);
    const auto* text = std::get_if<std::string>(&value);
    if (!text || row.name == "run.output_dir" || row.name == "checkpoint.resume") continue;
    if (as_utf8(*text) != *text)
      throw ConfigError(fmt::format(
          "{} = '{}' is not UTF-8, and config.toml, which keeps it, must be: rename it, "
          "or lead a link with a plain name there",
          row.name, *text));
  }
}

/// Returns the content of the run's config.toml: settings of the run, without those of this process
/// or of the run's present place.
ResolvedConfig of_the_run(ResolvedConfig resolved, const keep::RunPlace& place,
                          int threads_asked_for) {
  config::RunConfig& config = resolved.config;
  config.run.threads = threads_asked_for;
  if (config.run.log_level != resolved.log_level_of_files) {
    config.run.log_level = resolved.log_level_of_files;
    resolved.origins.erase("run.log_level");
  }
  config.run.output_dir.clear();
  resolved.origins["run.output_dir"] = "the folder that this file lies in";
  config.checkpoint.dir = keep::own_checkpoints(config.checkpoint.dir, place);
  config.checkpoint.resume.clear();
  resolved.origins.erase("checkpoint.resume");
  return resolved;
}

/// Returns the next commands, which need only the resolved configuration in the run's folder.
train::NextCommands next_commands(const keep::RunPlace& place, bool checkpoints_apart,
                                  const Job& job, int ranks_asked_for) {
  const std::string config = shell_word(place.directory + "/" + keep::kConfigFile),
                    weights = shell_word(checkpoints_apart ? place.checkpoints : place.directory);
  train::NextCommands next{.resume = fmt::format("tutti train {} --resume", config),
                           .eval = fmt::format("tutti eval {} --weights {}", config, weights)};
  const int ranks = job.communicator().size();
  if (ranks_asked_for > 0)
    next.resume += fmt::format(" --ranks {}", ranks_asked_for);
  else if (ranks > 1)
    next.resume = fmt::format("(as {} ranks of {}) {}", ranks, job.launcher().name, next.resume);
  return next;
}

/// Returns the record's facts about this program, machine and command.
trace::RunStart about_this_run(const Job& job, const TrainVerb& verb) {
  trace::RunStart about;
  about.version = version_short();
  const BuildFacts build = build_facts();
  about.git = build.git;
  about.compiler = build.compiler;
  about.mpi = build.mpi;
  about.onednn = build.onednn;
  about.machine = machine_line();
  about.binding = binding_line(job.topology());
  about.cores_per_host = job.topology().usable_cores();
  about.progress = job.progress();
  about.config_path = verb.flags.file();
  about.command = shell_line(own_command());
  return about;
}

/// Returns the specification for train() besides data, backend and ranks.
train::TrainerSpec spec_of_run(const config::RunConfig& config, const TrainVerb& verb,
                               const Job& job, const keep::RunPlace& place) {
  train::TrainerSpec spec;
  spec.config = config;
  spec.about = about_this_run(job, verb);
  spec.in_batch_job = std::ranges::any_of(
      kJobVariables, [](const char* name) { return std::getenv(name) != nullptr; });
  spec.terminal = terminal_of(STDERR_FILENO).erases;
  spec.checkpoint_written = [] { own_row::set_run(RunState::checkpoint); };
  spec.tuning_file = tuning_file(config.plan.tuning);
  spec.place = place;
  spec.resume_anyway = verb.resume_anyway;
  spec.next = next_commands(place, !config.checkpoint.dir.empty(), job, verb.ranks);
  if (!config.replay.machine.empty()) spec.machine = read_machine(config.replay.machine);
  return spec;
}

/// Checks that the tokens of a text mean the same as to the network that the run resumes or begins
/// with. Collective.
void compare_tokenizers(comm::Communicator& communicator, const config::RunConfig& config,
                        const ConfiguredData& data, const keep::RunPlace& place) {
  (void)comm::decide(communicator, "comparing tokenizers", [&] {
    if (!data.tokenizer) return std::string();
    if (!place.resume.empty())
      check_tokenizer(*data.tokenizer, place.resume, "checkpoint.resume");
    else if (!config.model.weights.empty() && config.model.weights_except.empty())
      check_tokenizer(*data.tokenizer, config.model.weights, "model.weights");
    return std::string();
  });
}

/// Writes a run's files beside its record, once nothing refuses it: a resumed run has them already.
void begin_folder(const ConfiguredData& data, const keep::RunPlace& place) {
  const std::filesystem::path kept = std::filesystem::path(place.directory) / kTokenizerFolder;
  const bool there = !place.resume.empty() && data::has_tokenizer(kept);
  if (there) return;
  if (data.tokenizer) keep_tokenizer(*data.tokenizer, place.directory);
  if (data.source_tokenizer)
    keep_tokenizer(*data.source_tokenizer, place.directory, kSourceTokenizerFolder);
}

/// Checks for mistakes before a folder is taken for the run. With --fresh it checks all that a dry
/// run would, since an earlier run is then set aside.
void check_before_folder(const TrainVerb& verb, const config::RunConfig& config, const Job& job,
                         const train::RunData& data, const backend::Backend& backend) {
  std::optional<comm::Machine> machine;
  if (!config.replay.machine.empty()) machine = read_machine(config.replay.machine);
  const int ranks = job.communicator().size();
  (void)train::replicas_of_job(config, ranks, machine ? &*machine : nullptr);
  if (!verb.fresh) return;
  (void)train::rehearse({.config = config,
                         .ranks = ranks,
                         .ranks_per_node = job.communicator().local_size(),
                         .data = data,
                         .backend = backend,
                         .machine = machine ? &*machine : nullptr,
                         .first = false});
}

void print_result(const train::RunResult& result, const keep::RunPlace& place) {
  print_json_output(Json{{"status", trace::name(result.status)},
                         {"exit_code", static_cast<int>(exit_code(result.status))},
                         {"steps", result.steps},
                         {"metrics", result.metrics},
                         {"test", result.test},
                         {"output_dir", as_utf8(place.directory)},
                         {"checkpoints", as_utf8(place.checkpoints)}});
}

/// Trains as one of the ranks of the job.
int train_here(const TrainVerb& verb, ResolvedConfig& resolved, const RankThreads& requested,
               double started) {
  config::RunConfig& config = resolved.config;
  const Job job(job_options(config.comm, static_cast<int>(config.run.threads)));
  comm::Communicator& communicator = job.communicator();
  comm::agree(communicator, "the configuration",
              fmt::format("tutti = {}\n{}", version_short(),
                          config::shared_lines(config::run_settings(resolved.config))));
  communicator.set_on_timeout(config.comm.on_timeout);
  if (config.comm.check) communicator.set_check();
  use_selection(communicator, config.comm.selection);
  config.run.threads = job.threads();
  log::debug("detected launcher: {}", job.launcher().to_string());

  if (config.checkpoint.resume.empty() && !verb.fresh)  // before data is made or copied
    (void)comm::decide(communicator, "looking at the output folder", [&] {
      (void)keep::preview_run_folder(keep::run_folder_request(config, false));
      return std::string();
    });
  const ComputeBackend compute = compute_backend(config);  // a device may be missing
  const PreparedData prepared = prepare_data(config, communicator);
  train::check_resume_anyway(verb.resume_anyway, config.checkpoint.resume);
  check_before_folder(verb, config, job, prepared.data.view(), compute.backend());
  const keep::RunFolder folder(communicator, keep::run_folder_request(config, verb.fresh));
  compare_tokenizers(communicator, config, prepared.data, folder.place());
  const std::string kept = resolved_toml(of_the_run(resolved, folder.place(), requested.threads));
  config.run.output_dir = folder.place().directory;
  config.checkpoint.resume.clear();  // a setting of the run, not of this process
  train::TrainerSpec spec = spec_of_run(config, verb, job, folder.place());
  spec.resolved_config = kept;
  spec.process_started = started;
  spec.run_begins = [&] { begin_folder(prepared.data, folder.place()); };
  // From the first time that training checks, before it leaves anything, a signal is a request;
  // before that it ends the process.
  std::optional<SignalFlags> signals;
  spec.stop_requested = [&signals] {
    if (!signals) signals.emplace();
    return signals->signal_number();
  };
  // A second interrupt from now on has nothing left to end early.
  spec.run_is_saved = [&signals] {
    own_row::set_run(RunState::stopped);
    if (signals) signals->ignore_from_now();
  };
  own_row::set_run(folder.place().resume.empty() ? RunState::no_checkpoint : RunState::checkpoint);
  spec.backend = &compute.backend();
  spec.communicator = &communicator;
  spec.data = prepared.data.view();
  spec.staging = prepared.staging;
  spec.read_counts = prepared.counts.get();
  const train::RunResult result = train::train(spec);
  if (verb.json && communicator.rank() == 0) print_result(result, spec.place);
  return static_cast<int>(exit_code(result.status));
}

int run_train(const TrainVerb& verb) {
  const double started = process_start_time();
  ResolvedConfig resolved = verb.flags.read_run();
  refuse_other_bytes(resolved.config);
  const config::RunConfig& config = resolved.config;
  if (verb.replays && config.replay.machine.empty())
    throw ConfigError(
        "tutti replay needs a machine whose time it tells: --machine FILE, or replay.machine; "
        "examples/machines has some");
  if (!config.replay.machine.empty()) (void)read_machine(config.replay.machine);  // before anything
  train::check_replay(config);
  require_data(config.data);
  const comm::Launcher launcher = read_launcher();
  train::check_device(config, std::max(verb.ranks, launcher.size));
  log::configure(config.run.log_level, launcher.rank, launcher.size);
  const RankThreads requested{.threads = static_cast<int>(config.run.threads),
                              .progress = config.comm.progress_threads,
                              .oversubscribe = verb.oversubscribe};
  check_threads_per_core(requested.threads, verb.oversubscribe, device::read_topology());
  if (verb.dry_run)
    return dry_run(resolved, {.ranks = verb.ranks,
                              .requested = requested,
                              .fresh = verb.fresh,
                              .resume_anyway = verb.resume_anyway});
  if (const auto code =
          launch_ranks(verb.ranks, requested, launcher.name == "none" ? 0 : launcher.size,
                       {.seconds = config.comm.timeout_s,
                        .ends_job = config.comm.on_timeout == comm::OnTimeout::abort}))
    return *code;
  if (launcher.rank == 0)
    for (const std::string& warning : resolved.warnings_of_training()) log::warn("{}", warning);
  return train_here(verb, resolved, requested, started);
}

/// With --json a failure is reported by the process that would also report any other end.
int run_and_tell(const TrainVerb& verb) {
  try {
    return run_train(verb);
  } catch (const Error& error) {
    if (verb.json && read_launcher().rank == 0)
      print_json_output(Json{{"status", trace::name(trace::RunStatus::failed)},
                             {"exit_code", static_cast<int>(error.exit_code())},
                             {"error", as_utf8(error.what())}});
    throw;
  }
}

std::vector<Flag> flags_of(TrainVerb& state) {
  return joined(
      {ranks_flag(state.ranks),
       switch_flag("--dry-run",
                   "Try everything that can fail before the first step, read the first samples of "
                   "each part of the data, write nothing, print the resolved configuration, and "
                   "end, with the exit code of the run",
                   &state.dry_run),
       switch_flag("--fresh",
                   "Begin anew where a run lies: it is set aside as FOLDER.1, FOLDER.2 and so on",
                   &state.fresh),
       named_flag(Names::key, "--resume-anyway", "KEY",
                  "With --resume, go on although this key has changed; may be repeated",
                  &state.resume_anyway),
       excluding(
           switch_flag("--json", "Print how the run has ended as JSON for programs, at the end",
                       &state.json),
           {"--dry-run"}),
       switch_flag("--oversubscribe",
                   "Start more than 8 ranks or threads for each core, if that is asked for",
                   &state.oversubscribe)},
      state.flags.flags_of_training());
}

}  // namespace

Verb replay_verb() {
  Verb verb = train_verb();
  auto state = std::make_shared<TrainVerb>();
  state->replays = true;
  verb.name = "replay";
  verb.summary = "Train as many replicas on another machine would, and tell its time";
  verb.text =
      "Trains run.replicas replicas by sync.scheme on the ranks at hand, one after another, with "
      "the same results as on as many ranks, and records beside the real time the one that the "
      "machine of --machine would have taken, with a device for each replica. Otherwise as tutti "
      "train.";
  verb.arguments = {state->flags.file_argument("replay", true)};
  verb.flags = flags_of(*state);
  verb.examples = {{"tutti replay run.toml --replicas 64 --sync local:8 --machine fat_tree.toml",
                    "Local SGD of 64 replicas, and the time of a fat tree"}};
  verb.see_also = {"tutti help train", "docs/replay.md", "docs/synchronisation.md"};
  verb.run = [state] { return run_and_tell(*state); };
  return verb;
}

Verb train_verb() {
  auto state = std::make_shared<TrainVerb>();  // shared: std::function must be copyable
  return {
      .name = "train",
      .summary = "Train one run: alone, on several ranks, or resumed",
      .text =
          "Leaves the run's record, resolved configuration and checkpoints in run.output_dir. "
          "Under mpirun, srun or another launcher each process is one rank. Ends with 0 when "
          "done, with 3 when the target was not reached, with 75 when it was stopped early "
          "with a checkpoint: start it again with --resume to go on.",
      .arguments = {state->flags.file_argument("train", true)},
      .flags = flags_of(*state),
      .examples = {{"tutti train run.toml", "Train on this machine"},
                   {"tutti train run.toml --ranks 2 --lr 0.2 --output-dir runs/two",
                    "Start two ranks, with another learning rate and folder"},
                   {"tutti train run.toml --resume", "Go on where the last run stopped"},
                   {"tutti train run.toml --dry-run", "Look at the configuration before you run"},
                   {"srun -n 64 tutti train run.toml", "Be one of 64 ranks of a Slurm job"}},
      .see_also = {"tutti help config", "tutti help plan", "tutti help study", "docs/runs.md",
                   "docs/configuration.md", "docs/record.md"},
      .run = [state] { return run_and_tell(*state); }};
}

}  // namespace tutti::cli
