#include "tutti/train/step/step_settings.h"

#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/settings/sync_scheme.h"

namespace tutti::train {

TrainingStepSpec step_spec(const config::RunConfig& config, NetworkSpec network,
                           const exchange::ReplicaMap& map, const split::PartGrid& grid,
                           bool has_clock) {
  constexpr int64_t kAnyEpoch = 1;  // whether replicas are apart does not depend on it
  const bool by_ranks = !has_clock && served_by_ranks(config, map.replicas());
  const auto meeting = meeting_settings(config, kAnyEpoch);
  const bool apart = meeting.has_value();
  int met = apart ? sync::copies_for_meetings(*meeting, map.local_count()) : 0;
  SummedGradients summed;
  if (apart) {
    summed = {.replicas = 1, .ranks = 1, .mean_of = 1};
  } else if (by_ranks) {
    const int group = server_settings(config)->ranks_of_worker(map.replicas());
    summed = {.replicas = group, .ranks = group};
    met = 1;  // the servers' weights
  } else if (applied_one_by_one(config, map.replicas())) {
    const int group = server_settings(config)->group_of(map.replicas());
    summed = {.replicas = group, .ranks = 1, .mean_of = group};
    met = server_settings(config)->workers(map.replicas()) - 1;  // versions that are read
  }
  return {.network = by_ranks ? with_served_buckets(std::move(network)) : std::move(network),
          .exchange = exchange_settings(config.comm),
          .map = map,
          .grid = grid,
          .accumulate = static_cast<int>(config.batch.accumulate),
          .order = config.parallel.order,
          .summed = summed,
          .met = met,
          .apart = apart,
          .spill = config.replay.spill,
          .to_servers = by_ranks};
}

}  // namespace tutti::train
