#include "tutti/train/settings/data_shards.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/train/settings/resume_check.h"

namespace tutti::train {

std::vector<int> nodes_of_micro_batches(const config::RunConfig& config,
                                        const NodeOfRank& node_of_rank, const split::PartGrid& grid,
                                        const exchange::ReplicaMap& replicas) {
  if (config.data.shuffle == config::Shuffle::global) return {};
  std::vector<int> numbers, node_of;
  for (int replica = 0; replica < replicas.replicas(); ++replica) {
    const int first = replicas.owner(replica) * grid.group_size(), node = node_of_rank(first);
    for (int other = 1; other < grid.group_size(); ++other)
      if (node_of_rank(first + other) != node)
        throw ConfigError(fmt::format(
            "data.shuffle = \"shard\" gives each node samples of its own, but replica {} is on "
            "ranks {} to {}, which are on several nodes",
            replica, first, first + grid.group_size() - 1));
    const auto known = std::ranges::find(numbers, node);
    node_of.insert(node_of.end(), static_cast<size_t>(config.batch.accumulate),
                   static_cast<int>(known - numbers.begin()));
    if (known == numbers.end()) numbers.push_back(node);
  }
  return node_of;
}

std::vector<int64_t> samples_of_files(const config::RunConfig& config, const data::Dataset& train) {
  std::vector<int64_t> counts;
  if (config.data.shuffle == config::Shuffle::global) return counts;
  for (const data::SamplesOfFile& of : train.files()) counts.push_back(of.samples);
  return counts;
}

void add_shards(const std::vector<int>& node_of, bool by_files, config::RunSettings& settings) {
  if (!node_of.empty())
    settings[kDataContent] += fmt::format("; replicas on nodes {}{}", fmt::join(node_of, " "),
                                          by_files ? ", which have files" : "");
}

}  // namespace tutti::train
