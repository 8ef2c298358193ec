#pragma once
#include <string>

#include "tutti/comm/communicator.h"

namespace tutti {

/// Exchanges while something goes wrong: `name` says what (README.md). Returns false when there is
/// no such fault.
bool cause_fault(const std::string& name, comm::Communicator& communicator);

}  // namespace tutti
