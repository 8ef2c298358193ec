# cmake -DSOURCE_DIR=tree -DVERSION=version -DLIBRARY_FOLDER=path -DHEADER=file -P interface.cmake: writes, only when it changed, the header
# that says which libtutti_cuda.so a program can use: the version, and a hash of all that both must know alike.
cmake_minimum_required(VERSION 3.20)
file(GLOB sources ${SOURCE_DIR}/tutti/backend/gpu/kernels/*.h ${SOURCE_DIR}/tutti/backend/gpu/kernels/*.cu)
list(APPEND sources ${SOURCE_DIR}/tutti/base/error.h ${SOURCE_DIR}/tutti/device/device.h ${SOURCE_DIR}/tutti/device/libraries.h ${SOURCE_DIR}/tutti/device/cuda/cuda_entry.h)
set(hashes "")
foreach(source ${sources})
  file(SHA256 ${source} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 12 hash)
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT [[
#pragma once
// Written by the build. The build that libtutti_cuda.so and the program belong to, and where its libraries lie, from the program's folder.
#define TUTTI_CUDA_INTERFACE "@VERSION@ @hash@"
#define TUTTI_LIBRARY_FOLDER "@LIBRARY_FOLDER@"
]])
