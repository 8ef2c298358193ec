#pragma once
// Restores a run from a checkpoint: moves values between the tensors of files and the arenas of all
// ranks.

#include <optional>
#include <span>

#include "tutti/comm/communicator.h"
#include "tutti/exchange/replicas.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/run_folder.h"
#include "tutti/train/network/weights.h"

namespace tutti::train {

/// Opens on this rank the checkpoint that the run's folder chose; none for a new run. Collective.
/// Throws IoError on a rank that does not see the checkpoint that rank 0 has verified.
std::optional<keep::Checkpoint> open_resume(comm::Communicator& communicator,
                                            const keep::RunPlace& place);

/// Restores the local replicas' own values, each from the file of the rank that ran it, or from
/// the files of its stages.
void restore_rows(const keep::Checkpoint& checkpoint, const exchange::ReplicaMap& replicas,
                  Weights& weights);

/// Restores weights, the optimizer state that this rank keeps, and the local replicas' own values.
/// If the checkpoint has another optimizer, its state begins at zero; if it has another number of
/// replicas, each begins with their average: both only where --resume-anyway allowed it. `workers`
/// are the replicas, or their parts, `parts` of each. The checkpoint may have other stages.
void restore(const keep::Checkpoint& checkpoint, const exchange::ReplicaMap& workers, int parts,
             std::span<const ArenaRange> kept, Weights& weights);

}  // namespace tutti::train
