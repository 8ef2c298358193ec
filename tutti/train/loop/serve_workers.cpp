#include "tutti/base/error.h"
#include "tutti/train/loop/reporter.h"
#include "tutti/train/loop/trainer_run.h"
#include "tutti/train/rounds/rank_servers.h"
#include "tutti/train/rounds/server_orders.h"
#include "tutti/train/settings/specs.h"

namespace tutti::train {
RunResult serve_workers(const TrainerSpec& spec) {
  const config::RunConfig& config = spec.config;
  comm::Communicator& own = *spec.communicator;
  const int workers = spec.job->size() - own.size();
  check_served_job(config, workers, workers, nullptr);
  const auto signal = [&spec] { return spec.stop_requested ? spec.stop_requested() : 0; };
  (void)signal();  // from now on a signal is a request that the workers receive
  const std::vector<std::byte> choices = hear_first_worker(*spec.job);
  NetworkSpec network = with_served_buckets(
      network_spec(config, *spec.data.train, config::batch_sizes(config.batch, workers).local));
  network.choices =
      plan::Choices::parse({reinterpret_cast<const char*>(choices.data()), choices.size()},
                           plan::Choices::Of::first_rank);
  network.warns = false;
  TrainingStep step({.network = std::move(network),
                     .map = exchange::ReplicaMap(own.size(), own.size(), own.rank()),
                     .accumulate = static_cast<int>(config.batch.accumulate),
                     .summed = {.replicas = 1, .ranks = 1},
                     .to_servers = true,
                     .seed = static_cast<uint64_t>(config.run.seed)},
                    *spec.backend, own);
  RankServers servers(rank_servers_spec(config, *server_settings(config), workers, {}), step,
                      *spec.backend, *spec.job);
  std::optional<trace::RunStatus> status;
  int64_t steps = 0;
  try {
    while (!(status = servers.serve(signal))) steps = servers.steps();
  } catch (const CommError&) {
    throw;  // the other ranks know the cause
  } catch (const std::exception& error) {
    append_failure(spec.place, *spec.job, error, {.steps = steps});
    throw;
  }
  return {.status = *status, .steps = 0};
}

}  // namespace tutti::train
