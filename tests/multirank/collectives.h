#pragma once
#include "tutti/comm/communicator.h"

namespace tutti {

/// Plans and runs every collective by every algorithm that does it, for several types, counts and roots, from private and from shared memory, and
/// on the two halves of a split. Throws InternalError for a wrong element. Returns the number of operations run.
int check_planned_collectives(comm::Communicator& communicator);

}  // namespace tutti
