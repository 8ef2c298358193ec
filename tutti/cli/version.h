#pragma once
#include <string>

namespace tutti {

/// What `tutti --version` prints: name, version, git hash, compiler, MPI, oneDNN, what is enabled.
/// Does not initialise MPI.
std::string version_text();

/// "0.1.0 (1a2b3c4)"
std::string version_short();

}  // namespace tutti
