#pragma once
#include <string>

namespace tutti {

/// The MPI library in use, in its own words, one line: "Open MPI v4.1.4, ...". May be called before MPI is initialised.
std::string mpi_library_version();

}  // namespace tutti
