# What the communication library needs from outside, to build it and to use it from C++.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
set(MPI_CXX_SKIP_MPICXX ON)  # the C interface only
find_package(MPI REQUIRED COMPONENTS CXX)
