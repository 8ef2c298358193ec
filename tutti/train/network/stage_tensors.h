#pragma once
// Gathers the tensors of a pipeline's stages: a checkpoint's files hold the whole model, so that a
// reader need not know the stages, and a resume may have others.

#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/keep/named_tensor.h"
#include "tutti/split/grid.h"

namespace tutti::train {

/// Collective. Returns on rank 0 the tensors of all stages of its replica, stage after stage. Those
/// of other stages are received when they are given (TensorRef::give); each stage must meanwhile
/// give, in their order, the tensors that this call returns to it. With a single stage, and on
/// other replicas' ranks, it returns `own` unchanged.
std::vector<keep::TensorRef> gather_stages(comm::Communicator& communicator,
                                           const split::PartGrid& grid,
                                           std::vector<keep::TensorRef> own);

}  // namespace tutti::train
