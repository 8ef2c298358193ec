#include "tutti/exchange/replicas.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::exchange {
namespace {

std::vector<int> checked_table(int replicas, int ranks, int rank) {
  if (ranks < 1 || replicas < ranks)
    throw ConfigError(
        fmt::format("{} replicas cannot be spread over {} ranks: each rank needs at least one; use "
                    "--replicas {} or fewer ranks",
                    replicas, ranks, ranks));
  CHECK(0 <= rank && rank < ranks, "rank {} of {}", rank, ranks);
  return comm::first_replicas(replicas, ranks);
}

}  // namespace

ReplicaMap::ReplicaMap(int replicas, int ranks, int rank)
    : replicas_(replicas), ranks_(ranks), rank_(rank),
      first_(checked_table(replicas, ranks, rank)) {}

ReplicaMap ReplicaMap::times(int micro_batches) const {
  CHECK(micro_batches >= 1, "{} micro-batches of a replica", micro_batches);
  std::vector<int> first = first_;
  for (int& replica : first) replica *= micro_batches;
  return {std::move(first), rank_};
}

int ReplicaMap::owner(int replica) const {
  CHECK(0 <= replica && replica < replicas_, "replica {} of {}", replica, replicas_);
  return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), replica) -
                          first_.begin()) -
         1;
}

}  // namespace tutti::exchange
