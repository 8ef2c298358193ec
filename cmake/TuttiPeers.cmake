# Libraries that `tutti bench comm` runs beside our collectives, where they are installed: Gloo (libgloo-dev) and oneCCL (TUTTI_ONECCL_ROOT: the
# folder that holds include/oneapi/ccl.hpp and lib/, of a oneAPI installation or of the Python package oneccl-devel). Only the program uses
# them, so they are no part of the installed package. Sets tutti_peer_gloo and tutti_peer_oneccl to `peer` or `absent`.
set(TUTTI_ONECCL_ROOT "" CACHE PATH "oneCCL, to compare collectives with; empty: none")

set(tutti_peer_gloo absent)
find_path(TUTTI_GLOO_INCLUDE gloo/allreduce.h)
find_library(TUTTI_GLOO_LIBRARY gloo)
mark_as_advanced(TUTTI_GLOO_INCLUDE TUTTI_GLOO_LIBRARY)
if(TUTTI_GLOO_INCLUDE AND TUTTI_GLOO_LIBRARY)
  set(tutti_peer_gloo peer)
  add_library(tutti_gloo INTERFACE)
  target_include_directories(tutti_gloo SYSTEM INTERFACE ${TUTTI_GLOO_INCLUDE})
  target_link_libraries(tutti_gloo INTERFACE ${TUTTI_GLOO_LIBRARY})
endif()

# The library for processors: the other one needs SYCL. Its static form needs its compiler's run-time library, which is linked to through a folder
# of its own: in the folder where it lies there are an MPI, an hwloc and a libfabric, too, which must not be taken for the system's.
set(tutti_peer_oneccl absent)
if(TUTTI_ONECCL_ROOT)
  file(GLOB oneccl_library ${TUTTI_ONECCL_ROOT}/lib/ccl/cpu/lib/libccl.a ${TUTTI_ONECCL_ROOT}/lib/ccl/cpu/lib/libccl.so)
  file(GLOB oneccl_runtime ${TUTTI_ONECCL_ROOT}/lib/libirc.so ${TUTTI_ONECCL_ROOT}/../../compiler/latest/lib/libirc.so)
  if(NOT EXISTS ${TUTTI_ONECCL_ROOT}/include/oneapi/ccl.hpp OR NOT oneccl_library OR NOT oneccl_runtime)
    message(FATAL_ERROR "TUTTI_ONECCL_ROOT=${TUTTI_ONECCL_ROOT}: no include/oneapi/ccl.hpp, lib/ccl/cpu/lib/libccl.a or .so, or lib/libirc.so there")
  endif()
  list(GET oneccl_library 0 oneccl_library)
  list(GET oneccl_runtime 0 oneccl_runtime)
  set(tutti_peer_oneccl peer)
  get_filename_component(runtime_name ${oneccl_runtime} NAME)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/oneccl)
  file(CREATE_LINK ${oneccl_runtime} ${PROJECT_BINARY_DIR}/oneccl/${runtime_name} SYMBOLIC)
  add_library(tutti_oneccl INTERFACE)
  target_include_directories(tutti_oneccl SYSTEM INTERFACE ${TUTTI_ONECCL_ROOT}/include)
  target_link_libraries(tutti_oneccl INTERFACE ${oneccl_library} ${PROJECT_BINARY_DIR}/oneccl/${runtime_name} PkgConfig::hwloc Threads::Threads ${CMAKE_DL_LIBS})
endif()

message(STATUS "Peers of `tutti bench comm`: memcpy, MPI; Gloo: ${tutti_peer_gloo}, oneCCL: ${tutti_peer_oneccl}")
