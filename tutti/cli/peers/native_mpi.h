#pragma once
// The MPI library's own collectives, for comparison: `tutti bench comm`.

#include <cstddef>
#include <functional>

#include "tutti/comm/schedule/element.h"
#include "tutti/comm/schedule/schedule.h"

namespace tutti::cli {

/// Returns a blocking call of the MPI library over all ranks of MPI_COMM_WORLD that does `task`
/// (equal parts only), from `input` to `output`; empty where MPI has no such type or operation
/// (16-bit floats, a mean). Needs a living MpiSession. Throws CommError.
std::function<void()> native_collective(const comm::Task& task, comm::Element element,
                                        comm::ReduceOp op, const void* input, void* output);

}  // namespace tutti::cli
