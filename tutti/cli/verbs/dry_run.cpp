#include "tutti/cli/verbs/dry_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_text.h"
#include "tutti/cli/data/run_data_path.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/machine_file.h"
#include "tutti/cli/job/selection_file.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/run_folder.h"
#include "tutti/train/loop/rehearsal.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/resume_check.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

struct PlannedRanks {
  int count = 1;
  int per_node = 1;
  int threads = 1;      ///< threads of each rank
  std::string device;   ///< computes in their place; empty: none
  std::string command;  ///< command that starts them; empty: they exist already, or there is only
                        ///< one
};

PlannedRanks plan_ranks(int ranks, const RankThreads& requested, const comm::Launcher& launcher) {
  const device::Topology topology = device::read_topology();
  const Surroundings surroundings = read_surroundings();
  PlannedRanks planned;
  if (launcher.name != "none") {
    launch_ranks(ranks, requested, launcher.size);  // under a launcher it only compares the numbers
    planned.count = launcher.size;
  } else if (ranks > 1) {
    planned.count = ranks;
    planned.command = plan_launch(ranks, requested, own_command(), topology, surroundings).line;
  }
  planned.per_node = launcher.name != "none" ? std::max(1, launcher.local_size) : planned.count;
  planned.threads =
      choose_threads(requested.threads, surroundings.omp_num_threads, topology, planned.per_node);
  return planned;
}

void print_summary(const config::RunConfig& config, const PlannedRanks& ranks,
                   const ConfiguredData& data, const train::Rehearsal& run,
                   const std::string& resume, const std::string& in_the_way) {
  std::string fields;
  for (const data::Field& field : data.train->fields())
    fields += (fields.empty() ? "" : ", ") + field.to_string();
  fmt::print("# A dry run: whatever can fail before the first step has been tried and {}.\n",
             in_the_way.empty() ? "is right" : "is right but for the output folder");
  fmt::print("# Samples are read when their turn comes; {} have been: the first of each part.\n",
             run.samples_read);
  // Windows may begin anywhere: count as many as lie side by side.
  std::string counts =
      fmt::format("{} training", std::max<int64_t>(1, data.train->size() / data.train->spacing()));
  for (const auto& [set, name] :
       {std::pair(data.validation.get(), "validation"), std::pair(data.test.get(), "test")})
    if (set) counts += fmt::format(" and {} {}", set->size(), name);
  fmt::print("#   data     {}: {} samples of {}\n", config.data.dataset, counts, fields);
  fmt::print("#   model    {}: {} parameters\n", config.model.name, run.parameters);
  if (!config.model.library.empty())
    fmt::print("#   library  {}: its code runs in this program, and has run for this\n",
               config.model.library);
  fmt::print("#   batch    {} samples: {} replica{} of {}{}, on {} rank{} x {} thread{}\n",
             run.batch.global, run.replicas, run.replicas == 1 ? "" : "s",
             config.batch.accumulate > 1 ? fmt::format("{} x ", config.batch.accumulate) : "",
             run.batch.local, ranks.count, ranks.count == 1 ? "" : "s", ranks.threads,
             ranks.threads == 1 ? "" : "s");
  if (!ranks.device.empty()) fmt::print("#   device   {}\n", ranks.device);
  fmt::print("#   length   {} steps, {} an epoch\n", run.steps, run.steps_per_epoch);
  if (!ranks.command.empty()) fmt::print("#   launch   {}\n", ranks.command);
  fmt::print("#   output   {}\n", config.run.output_dir);
  if (!resume.empty()) fmt::print("#   resume   {}\n", resume);
  fmt::print("\n");
}

/// Returns the folder that the run would use. Another run there stops the start, but not the
/// rehearsal.
keep::RunPlace place_beside(keep::RunFolderRequest request, std::string& in_the_way) {
  try {
    return keep::preview_run_folder(request);
  } catch (const keep::HoldsRun& refused) {
    in_the_way = refused.what();
  }
  request.fresh = true;
  return keep::preview_run_folder(request);
}

}  // namespace

std::error_code check_output_folder(const std::string& directory) {
  const auto refuse = [&](const std::string& reason) {
    keep::refuse_output_folder(directory, reason);
  };
  std::error_code unreachable;
  fs::path place = fs::absolute(directory, unreachable);
  while (!fs::exists(fs::symlink_status(place, unreachable)) && place.has_relative_path())
    place = place.parent_path();
  if (!fs::is_directory(place, unreachable))
    refuse(unreachable ? unreachable.message() : fmt::format("'{}' is no folder", place.string()));
  std::string trial = (place / ".tutti-dry-run-XXXXXX").string();
  if (::mkdtemp(trial.data()) == nullptr)
    refuse(fmt::format("nothing can be written into '{}': {}", place.string(), file_error(errno)));
  std::error_code no_links;
  fs::create_directory_symlink("step", fs::path(trial) / "best", no_links);
  ::unlink((trial + "/best").c_str());
  ::rmdir(trial.c_str());
  return no_links;
}

void take_data_content(const keep::CheckpointInfo& before, config::RunSettings& settings) {
  if (const auto content = before.settings.find(train::kDataContent);
      content != before.settings.end())
    settings[train::kDataContent] = content->second;
}

int dry_run(const ResolvedConfig& resolved, const DryRunFlags& flags) {
  const comm::Launcher launcher = read_launcher();
  if (launcher.rank == 0)
    for (const std::string& warning : resolved.warnings_of_training()) log::warn("{}", warning);
  config::RunConfig config = resolved.config;
  PlannedRanks planned = plan_ranks(flags.ranks, flags.requested, launcher);
  config.run.threads = planned.threads;
  config.data.generate_when_read = true;
  (void)read_selection(config.comm.selection);
  std::string in_the_way;
  const keep::RunPlace place =
      place_beside(keep::run_folder_request(config, flags.fresh), in_the_way);
  config.run.output_dir = place.directory;
  check_output_folder(place.directory);
  if (const std::error_code none = check_output_folder(place.checkpoints);
      none && config.checkpoint.best)
    log::warn(
        "'{}': the file system makes no links ({}): 'best' will be a file with the name of the "
        "best checkpoint",
        place.checkpoints, none.message());
  train::check_resume_anyway(flags.resume_anyway, config.checkpoint.resume);
  std::optional<keep::CheckpointInfo> before;
  if (!place.resume.empty()) before = keep::verify_checkpoint(place.resume);
  if (before && config.run.replicas == 0) config.run.replicas = train::replicas_of(*before);
  check_data_path(config);
  const ConfiguredData data = open_configured(config);
  const ComputeBackend compute = compute_backend(config);
  if (compute.device) planned.device = device_line(compute.device->facts());
  std::optional<comm::Machine> machine;
  if (!config.replay.machine.empty()) machine = read_machine(config.replay.machine);
  const train::Rehearsal run = train::rehearse({.config = config,
                                                .ranks = planned.count,
                                                .ranks_per_node = planned.per_node,
                                                .data = data.view(),
                                                .backend = compute.backend(),
                                                .machine = machine ? &*machine : nullptr,
                                                .resumes = before.has_value(),
                                                .first = launcher.rank <= 0});
  std::string resume;
  if (before) {
    config::RunSettings settings = train::effective_settings(config, run.replicas, data.view());
    // It is not known yet which replicas will be on which nodes.
    if (config.data.shuffle == config::Shuffle::shard || config::made_when_read(config.data))
      take_data_content(*before, settings);
    train::check_resume(place.resume, *before, settings, flags.resume_anyway);
    resume = fmt::format("{}, at step {}", place.resume, before->step);
  }
  if (!config.plan.choices_from.empty()) (void)train::choices_from(config);
  if (launcher.rank > 0) return 0;
  print_summary(config, planned, data, run, resume, in_the_way);
  fmt::print("{}", resolved_toml(resolved));
  std::fflush(stdout);  // the refusal is printed last
  if (!in_the_way.empty()) throw ConfigError("all else is right, but " + in_the_way);
  return 0;
}

}  // namespace tutti::cli
