#pragma once
// Which node each replica's samples are of, where nodes have samples of their own (data.shuffle =
// "shard").

#include <cstdint>
#include <functional>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/config/run_settings.h"
#include "tutti/data/dataset.h"
#include "tutti/exchange/replicas.h"
#include "tutti/split/grid.h"

namespace tutti {

/// The node of each rank.
using NodeOfRank = std::function<int(int rank)>;

/// data::SamplerSpec::node_of, for each of the batch.accumulate turns of each replica: nodes are
/// numbered in the order of their first ranks. Empty where all samples are everybody's. ConfigError
/// where the parts of a replica are on several nodes.
std::vector<int> nodes_of_turns(const RunConfig& config, const NodeOfRank& node_of_rank,
                                const PartGrid& grid, const ReplicaMap& replicas);

/// data::SamplerSpec::file_samples. Empty where all samples are everybody's.
std::vector<int64_t> samples_of_files(const RunConfig& config, const data::Dataset& train);

/// Adds the nodes to what a resume compares as the run's data: another number gives other batches.
/// `by_files`: files are dealt out to them.
void add_shards(const std::vector<int>& node_of, bool by_files, RunSettings& settings);

}  // namespace tutti
