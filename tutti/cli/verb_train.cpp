// tutti train: one run.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/log.h"
#include "tutti/cli/config_flags.h"
#include "tutti/cli/config_text.h"
#include "tutti/cli/dry_run.h"
#include "tutti/cli/job.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/selection_file.h"
#include "tutti/cli/signals.h"
#include "tutti/cli/terminal.h"
#include "tutti/cli/verbs.h"
#include "tutti/cli/version.h"
#include "tutti/train/trainer.h"

namespace tutti {
namespace {

struct TrainVerb {
  ConfigFlags flags;
  int ranks = 0;
  bool dry_run = false;
};

std::string command_line() {
  std::string line;
  for (const std::string& word : own_command()) line += (line.empty() ? "" : " ") + word;
  return line;
}

ExitCode exit_code(RunStatus status) {
  switch (status) {
    case RunStatus::done: return ExitCode::done;
    case RunStatus::target_missed: return ExitCode::target_missed;
    case RunStatus::requeue: return ExitCode::requeue;
    case RunStatus::failed: break;
  }
  return ExitCode::failure;
}

void prepare_output(const ResolvedConfig& resolved, comm::Communicator& communicator) {
  if (communicator.rank() == 0) {
    const std::filesystem::path directory = resolved.config.run.output_dir;
    std::error_code failed;
    std::filesystem::create_directories(directory, failed);
    if (failed)
      throw IoError(fmt::format("cannot make the output folder '{}': {}", directory.string(),
                                failed.message()));
    write_resolved(resolved, (directory / "config.toml").string());
  }
  communicator.barrier();
}

int run_train(const TrainVerb& verb) {
  const double started = process_start_time();
  ResolvedConfig resolved = verb.flags.read();
  RunConfig& config = resolved.config;
  const comm::Launcher launcher = read_launcher();
  log::configure(config.run.log_level, launcher.rank, launcher.size);
  const RankThreads requested{.threads = static_cast<int>(config.run.threads),
                              .progress = config.comm.progress_threads};
  if (verb.dry_run) return dry_run(resolved, verb.ranks, requested);
  if (const auto code =
          launch_ranks(verb.ranks, requested, launcher.name == "none" ? 0 : launcher.size))
    return *code;
  if (launcher.rank == 0)
    for (const std::string& warning : resolved.warnings) log::warn("{}", warning);

  const Job job({.timeout = config.comm.timeout_s,
                 .nodes = config.comm.nodes,
                 .threads = static_cast<int>(config.run.threads),
                 .progress = config.comm.progress_threads});
  comm::Communicator& communicator = job.communicator();
  communicator.set_on_timeout(config.comm.on_timeout);
  if (config.comm.check) communicator.set_check();
  use_selection(communicator, config.comm.selection);
  config.run.threads = job.threads();
  prepare_output(resolved, communicator);
  log::debug("detected launcher: {}", job.launcher().to_string());

  const ConfiguredData data = open_configured(config);
  const CpuBackend backend;
  const SignalFlags signals;
  TrainerSpec spec;
  spec.config = config;
  spec.resolved_config = resolved_toml(resolved);
  spec.about.version = version_short();
  const BuildFacts build = build_facts();
  spec.about.git = build.git;
  spec.about.compiler = build.compiler;
  spec.about.mpi = build.mpi;
  spec.about.onednn = build.onednn;
  spec.about.machine = machine_line();
  spec.about.binding = binding_line(job.topology());
  spec.about.cores_per_host = job.topology().usable_cores();
  spec.about.progress = job.progress();
  spec.about.config_path = verb.flags.file();
  spec.about.command = command_line();
  spec.terminal = terminal_of(STDERR_FILENO).erases;
  spec.stop_requested = [&signals] { return signals.signal_number(); };
  spec.process_started = started;
  spec.tuning_file = tuning_file(config.plan.tuning);
  spec.backend = &backend;
  spec.communicator = &communicator;
  spec.train = data.train.get();
  spec.test = data.test.get();
  const RunResult result = train(spec);
  return static_cast<int>(exit_code(result.status));
}

}  // namespace

RunVerb add_train(CLI::App& verb) {
  auto state = std::make_shared<TrainVerb>();  // shared: std::function must be copyable
  state->flags.add_to(verb, true);
  add_ranks_flag(verb, state->ranks);
  verb.add_flag("--dry-run", state->dry_run,
                "Try everything that can fail before the first step, write nothing, print the "
                "resolved configuration, and end");
  return [state] { return run_train(*state); };
}

}  // namespace tutti
