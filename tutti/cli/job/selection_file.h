#pragma once
// The table of algorithms (comm/schedule/selection.h) as a file: comm.selection, --selection.

#include <string>

#include "tutti/comm/communicator.h"

namespace tutti::cli {

/// Returns the table in `path` followed by the built-in one; only the built-in one for an empty
/// path. Throws IoError, and ConfigError with file and line.
comm::Selection read_selection(const std::string& path);

/// Makes later plans of `communicator` use that table. Collective: rank 0 reads, all ranks parse
/// the same text.
void use_selection(comm::Communicator& communicator, const std::string& path);

}  // namespace tutti::cli
