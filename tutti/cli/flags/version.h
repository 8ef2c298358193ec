#pragma once
#include <string>

namespace tutti::cli {

/// Returns the output of `tutti --version`: name, version, git hash, compiler, MPI, oneDNN, enabled
/// parts. Does not initialise MPI.
std::string version_text();
/// Returns the same for programs.
std::string version_json();

/// Returns what this version can compute on: "CPU (fp32, bf16); ...". `tutti doctor` looks which
/// devices are there.
std::string device_text();

/// Returns "0.1.0 (1a2b3c4)".
std::string version_short();

/// The sources and tools of the program's build, and the libraries it runs on, as each run's record
/// names them.
struct BuildFacts {
  std::string git;       ///< "1a2b3c4"
  std::string compiler;  ///< "GNU 12.2.0, -march=native"
  std::string mpi;       ///< "Open MPI v4.1.4"
  std::string onednn;    ///< "2.7.2 (AVX512_CORE)"
};
BuildFacts build_facts();

}  // namespace tutti::cli
