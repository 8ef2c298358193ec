# cmake -DSOURCE_DIR=tree -DVERSION=version -DHEADER=file -P WorkloadInterface.cmake: writes, only when it changed, the header that says what a
# workload of one's own is compiled against: the version, and a hash of all headers that such a workload may include.
cmake_minimum_required(VERSION 3.20)
set(headers "")
foreach(folder base tensor graph ops models)
  file(GLOB_RECURSE found ${SOURCE_DIR}/tutti/${folder}/*.h)
  list(APPEND headers ${found})
endforeach()
list(APPEND headers ${SOURCE_DIR}/tutti/train/metrics/metrics.h ${SOURCE_DIR}/tutti/train/workload.h)
list(SORT headers)
set(hashes "")
foreach(header ${headers})
  file(SHA256 ${header} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 12 hash)
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT [[
#pragma once
// Written by the build. The text that a shared object of model.library carries.
#define TUTTI_WORKLOAD_INTERFACE "tutti workload interface: @VERSION@ @hash@"
]])
