# What the communication library needs from outside, to build it and to use it from C++.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
set(MPI_CXX_SKIP_MPICXX ON)  # the C interface only
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(nlohmann_json REQUIRED)  # base
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)       # device: cores for progress threads
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)  # checksums of messages
