#include "tutti/train/step/step_settings.h"

#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/settings.h"
#include "tutti/train/settings/sync.h"

namespace tutti {

TrainingStepSpec step_spec(const RunConfig& config, NetworkSpec network, const ReplicaMap& map,
                           const PartGrid& grid, bool has_clock) {
  constexpr int64_t kAnyEpoch = 1;  // whether replicas are apart does not depend on its steps
  const bool by_ranks = !has_clock && served_by_ranks(config, map.replicas());
  int group = 0;
  if (by_ranks)
    group = server_settings(config)->ranks_of_worker(map.replicas());
  else if (applied_one_by_one(config, map.replicas()))
    group = server_settings(config)->group_of(map.replicas());
  return {.network = by_ranks ? with_served_buckets(std::move(network)) : std::move(network),
          .exchange = exchange_settings(config.comm),
          .map = map,
          .grid = grid,
          .accumulate = static_cast<int>(config.batch.accumulate),
          .order = config.parallel.order,
          .apart = meeting_settings(config, kAnyEpoch).has_value(),
          .spill = config.replay.spill,
          .served = by_ranks ? 0 : group,
          .group = by_ranks ? group : 0};
}

}  // namespace tutti
