#pragma once
// How a run becomes a checkpoint and a checkpoint a run again: what moves between the arenas of all
// ranks and the tensors of a file.

#include <optional>
#include <span>

#include "tutti/comm/communicator.h"
#include "tutti/exchange/replicas.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/run_folder.h"
#include "tutti/train/network/weights.h"

namespace tutti {

/// The checkpoint that the run's folder chose, open on this rank; none for a new run. Collective.
/// Throws IoError on a rank that does not see the checkpoint that rank 0 has verified.
std::optional<Checkpoint> open_resume(comm::Communicator& communicator, const RunPlace& place);

/// What each local replica has of its own, from the file of the rank that ran it, or from those of
/// its stages.
void restore_rows(const Checkpoint& checkpoint, const ReplicaMap& replicas, Weights& weights);

/// Weights, the optimizer state that this rank keeps, and what the local replicas have each of
/// their own. Where the checkpoint is of another optimizer, its state begins at zero; of another
/// number of replicas, each begins with their average: both only where --resume-anyway allowed it.
/// `workers`: the replicas, or their parts, `parts` of each. A checkpoint may be of other stages.
void restore(const Checkpoint& checkpoint, const ReplicaMap& workers, int parts,
             std::span<const ArenaRange> kept, Weights& weights);

}  // namespace tutti
