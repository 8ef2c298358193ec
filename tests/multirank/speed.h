#pragma once
#include "tutti/comm/communicator.h"

namespace tutti {

/// Prints, for some sizes, the median microseconds of one reduction of freshly written gradients
/// and of a memcpy of the same bytes on all ranks at once, measured alternately.
void measure_speed(comm::Communicator& communicator);

}  // namespace tutti
