#pragma once
#include <string>

#include "tutti/comm/communicator.h"

namespace tutti {

/// Runs exchanges with the fault `name` (README.md). Returns false if there is no such fault.
bool cause_fault(const std::string& name, comm::Communicator& communicator);

}  // namespace tutti
