#include "tutti/cli/verbs/study_refusals.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/cli/job/machine_file.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/server_settings.h"

namespace tutti::cli {

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

void refuse_groups(const config::RunConfig& config) {
  const auto refuse = [](int64_t ranks, const char* key) {
    if (ranks > 1)
      throw ConfigError(fmt::format(
          "a study counts replicas by ranks, and with {} = {} each has several: leave it out", key,
          ranks));
  };
  refuse(config.parallel.tensor, "parallel.tensor");
  refuse(config.parallel.pipeline, "parallel.pipeline");
}

void check_device_sizes(const config::RunConfig& config, const study::StudyFlags& flags) {
  for (const study::Size& size : flags.ranks)
    train::check_device(config, flags.replay_ranks > 0 ? flags.replay_ranks : size.ranks);
}

void check_served_sizes(const config::RunConfig& config, const study::StudyFlags& flags) {
  if (train::server_ranks(config) > 0)
    throw ConfigError(
        "a study compares ranks that all train: sync.server_ranks is not built for studies, take "
        "sync.servers, which are beside workers");
  std::optional<comm::Machine> machine;
  if (!config.replay.machine.empty()) machine = read_machine(config.replay.machine);
  for (const study::Size& size : flags.ranks) {
    const bool replay = flags.replay_ranks > 0;
    config::RunConfig run = config;
    if (replay) run.run.replicas = size.ranks;
    if (flags.replicas > 0) run.run.replicas = flags.replicas;
    train::check_served_job(run, run.run.replicas > 0 ? run.run.replicas : size.groups(),
                            replay ? flags.replay_ranks : size.ranks,
                            machine ? &*machine : nullptr);
  }
}

}  // namespace tutti::cli
