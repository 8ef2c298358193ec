#pragma once
// Determines the node of each replica's samples, where nodes have samples of their own
// (data.shuffle = "shard").

#include <cstdint>
#include <functional>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/config/run_settings.h"
#include "tutti/data/dataset.h"
#include "tutti/exchange/replicas.h"
#include "tutti/split/grid.h"

namespace tutti::train {

/// Returns the node of a rank.
using NodeOfRank = std::function<int(int rank)>;

/// Returns data::SamplerSpec::node_of for each of a replica's batch.accumulate micro-batches: nodes
/// are numbered in the order of their first ranks. Empty if all samples are available to all.
/// Throws ConfigError if the parts of a replica are on several nodes.
std::vector<int> nodes_of_micro_batches(const config::RunConfig& config,
                                        const NodeOfRank& node_of_rank, const split::PartGrid& grid,
                                        const exchange::ReplicaMap& replicas);

/// Returns data::SamplerSpec::file_samples. Empty if all samples are available to all.
std::vector<int64_t> samples_of_files(const config::RunConfig& config, const data::Dataset& train);

/// Adds the number of nodes to the data settings that a resume compares: another number gives other
/// batches. `by_files`: files are assigned to nodes.
void add_shards(const std::vector<int>& node_of, bool by_files, config::RunSettings& settings);

}  // namespace tutti::train
