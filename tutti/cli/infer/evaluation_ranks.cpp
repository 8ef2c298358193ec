#include "tutti/cli/infer/evaluation_ranks.h"

#include <algorithm>

#include "tutti/base/log.h"
#include "tutti/cli/infer/import_weights.h"
#include "tutti/cli/job/launch.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

split::PartGrid grid_of(const config::RunConfig& config, const comm::Communicator& ranks) {
  if (ranks.size() == 1) return {};
  config::ParallelSection shared = config.parallel;
  shared.batchnorm_group_size = 1;
  return train::part_grid(shared, ranks.size(), ranks.rank());
}

}  // namespace

std::optional<int> launch_evaluation(int ranks, const train::FoundWeights& found,
                                     config::RunConfig& config) {
  const comm::Launcher launcher = read_launcher();
  train::check_device_ranks(config, std::max(ranks, launcher.size));
  log::configure(config.run.log_level, launcher.rank, launcher.size);
  take_threads(found, std::max({ranks, launcher.local_size, 1}), config);
  check_threads_per_core(static_cast<int>(config.run.threads), false, device::read_topology());
  return launch_ranks(
      ranks,
      {.threads = static_cast<int>(config.run.threads), .progress = config.comm.progress_threads},
      launcher.name == "none" ? 0 : launcher.size,
      {.seconds = config.comm.timeout_s, .trains = false});
}

EvaluationRanks::EvaluationRanks(config::RunConfig& config, const train::FoundWeights& found,
                                 bool one_group)
    : job_(job_options(config.comm, static_cast<int>(config.run.threads))),
      grid_(grid_of(config, job_.communicator())) {
  config.run.threads = job_.threads();
  if (const std::string line = threads_line(found, job_.threads());
      job_.communicator().rank() == 0 && !line.empty() && !train::on_device(config.run))
    log::info("{}", line);
  const comm::Communicator& all = job_.communicator();
  if (!one_group || grid_.groups() == 1) return;
  if (all.rank() == 0)
    log::info("{} rank(s) predict; the other {} have nothing to do", grid_.parts(),
              all.size() - grid_.parts());
  idle_ = grid_.group() > 0;
  group_ = job_.communicator().split(grid_.group(), all.rank());
  grid_ = grid_of(config, *group_);
}

}  // namespace tutti::cli
