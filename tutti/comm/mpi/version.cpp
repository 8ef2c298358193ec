#include "tutti/comm/mpi/version.h"

#include <mpi.h>

namespace tutti {

std::string mpi_library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text);  // not by length: some libraries count the final zero
  return whole.substr(0, whole.find('\n'));
}

}  // namespace tutti
