#pragma once
// What the stages of a pipeline have of a model, put together: a checkpoint's files are of the
// whole model, so that a reader needs to know nothing of stages, and a resume may have others.

#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/keep/named_tensor.h"
#include "tutti/split/grid.h"

namespace tutti {

/// Collective. On rank 0 those of all stages of its replica, one stage's after the other's; on
/// other ranks `own` as it is, and so where there is one stage.
std::vector<NamedTensor> gather_stages(comm::Communicator& communicator, const PartGrid& grid,
                                       std::vector<NamedTensor> own);

}  // namespace tutti
