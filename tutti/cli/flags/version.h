#pragma once
#include <string>

namespace tutti {

/// What `tutti --version` prints: name, version, git hash, compiler, MPI, oneDNN, what is enabled.
/// Does not initialise MPI.
std::string version_text();
/// The same for programs.
std::string version_json();

/// What this version computes on: "CPU (fp32, bf16)" and what it has no part for.
std::string device_text();

/// "0.1.0 (1a2b3c4)"
std::string version_short();

/// What the program was built from and with, and what it runs on, as each run's record names it.
struct BuildFacts {
  std::string git;       ///< "1a2b3c4"
  std::string compiler;  ///< "GNU 12.2.0, -march=native"
  std::string mpi;       ///< "Open MPI v4.1.4"
  std::string onednn;    ///< "2.7.2 (AVX512_CORE)"
};
BuildFacts build_facts();

}  // namespace tutti
