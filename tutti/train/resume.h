#pragma once
// How a run becomes a checkpoint and a checkpoint a run again: where checkpoints lie, which one a
// run may resume from, and what moves between the arenas of all ranks and the tensors of a file.

#include <filesystem>
#include <optional>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/parallel/replicas.h"
#include "tutti/plan/choices.h"
#include "tutti/train/checkpoint.h"
#include "tutti/train/config.h"
#include "tutti/train/weights.h"

namespace tutti {

/// run.output_dir/checkpoints, or checkpoint.dir.
std::filesystem::path checkpoint_directory(const RunConfig& config);
/// `path` if it is a checkpoint, else the newest valid one in it. Throws ConfigError naming `key`
/// if there is none.
std::filesystem::path checkpoint_at(const std::filesystem::path& path, const char* key);

/// The checkpoint that checkpoint.resume asks for; none for a new run, or for "latest" where there
/// is none yet. Throws ConfigError if it is of a run whose results would not go on the same: other
/// replicas, seed, precision or samples a replica.
std::optional<Checkpoint> find_resume(const RunConfig& config, int64_t replicas,
                                      int64_t local_batch);

/// The kernel choices that a checkpoint keeps, with what else decides the bits: samples a replica
/// and threads a rank.
std::string choices_to_keep(const Choices& choices, int64_t local_batch, int64_t threads);

/// Every replica's statistics, on every rank, in replica order. Collective.
std::vector<NamedTensor> gather_statistics(const Weights& weights, const ReplicaMap& replicas,
                                           comm::Communicator& communicator);
/// Weights, optimizer state and the local replicas' statistics.
void restore(const Checkpoint& checkpoint, const ReplicaMap& replicas, Weights& weights);

}  // namespace tutti
