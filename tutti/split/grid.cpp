#include "tutti/split/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/base/error.h"

namespace tutti::split {

PartGrid::PartGrid(const std::vector<int64_t>& spatial, int64_t sharing, int ranks, int rank,
                   int64_t stages)
    : sharing_(static_cast<int>(sharing)), stages_(static_cast<int>(stages)), ranks_(ranks),
      rank_(rank) {
  if (spatial.size() > kAxes)
    throw ConfigError(
        fmt::format("parallel.spatial has {} numbers: samples are shared along {} "
                    "dimensions at most",
                    spatial.size(), kAxes));
  for (size_t axis = 0; axis < spatial.size(); ++axis)
    along_[axis] = static_cast<int>(spatial[axis]);
  if (ranks % parts() != 0)
    throw ConfigError(fmt::format(
        "parallel.spatial = [{0}]: {1} ranks share a sample, and this job has {2}: start "
        "a multiple of {1} ranks (--ranks {1}), or share none with "
        "--set parallel.spatial=1, and --resume-anyway parallel.spatial of a run that goes on",
        fmt::join(spatial, ", "), parts(), ranks));
  if (stages > 1 && (parts() > 1 || sharing > 1))
    throw ConfigError(
        fmt::format("parallel.pipeline = {} is not built together with {}: give one of the two",
                    stages, parts() > 1 ? "parallel.spatial" : "parallel.batchnorm_group_size"));
  if (ranks % group_size() != 0)
    throw ConfigError(
        fmt::format("parallel.pipeline: {} {} not divide into replicas of {} stages: take a "
                    "multiple of {} ranks",
                    ranks, ranks == 1 ? "rank does" : "ranks do", stages, stages));
  if (groups() % sharing_ != 0)
    throw ConfigError(fmt::format(
        "parallel.batchnorm_group_size: {} replicas on ranks of their own are no groups of {}",
        groups(), sharing_));
}

void PartGrid::require_own_ranks(int64_t replicas) const {
  if (peers() == 1 || replicas == groups()) return;
  throw ConfigError(fmt::format(
      "{} replica(s) of {} {} take {} ranks, this job has {}: where ranks share samples, "
      "statistics or layers, each replica needs ranks of its own; start as many (--ranks {}), or "
      "set run.replicas = {}",
      replicas, group_size(), stages_ > 1 ? "stages" : "parts", replicas * group_size(), ranks_,
      replicas * group_size(), groups()));
}

PartGrid PartGrid::of_tensors(int64_t tensor, int ranks, int rank, bool positions) {
  PartGrid grid;
  grid.positions_ = positions;
  grid.tensor_ = static_cast<int>(tensor);
  grid.ranks_ = ranks;
  grid.rank_ = rank;
  if (ranks % grid.tensor_ != 0)
    throw ConfigError(fmt::format(
        "parallel.tensor = {0}: {1} rank(s) are no replicas whose layers {0} ranks share: start a "
        "multiple of {0} (--ranks {0}), or leave it out (--tensor 1)",
        tensor, ranks));
  return grid;
}

}  // namespace tutti::split
