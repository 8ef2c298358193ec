#pragma once
// Gathers the tensors of a pipeline's stages: a checkpoint's files hold the whole model, so that a
// reader need not know the stages, and a resume may have others.

#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/keep/named_tensor.h"
#include "tutti/split/grid.h"

namespace tutti {

/// Collective. Returns on rank 0 the tensors of all stages of its replica, stage after stage; on
/// other ranks, and with a single stage, `own` unchanged.
std::vector<NamedTensor> gather_stages(comm::Communicator& communicator, const PartGrid& grid,
                                       std::vector<NamedTensor> own);

}  // namespace tutti
