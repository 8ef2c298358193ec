#pragma once
// What stands behind the opaque handles of tutti_comm.h.

#include <memory>

#include "tutti/capi/tutti_comm.h"
#include "tutti/comm/communicator.h"

struct tutti_comm {
  std::unique_ptr<tutti::comm::Communicator> communicator;
  int in_use = 0;  ///< plans and allocations that stand on it
};

struct tutti_comm_plan {
  tutti_comm* owner;  ///< not owned; lives longer, because it is in use
  std::unique_ptr<tutti::comm::CollectiveOperation> operation;
};
