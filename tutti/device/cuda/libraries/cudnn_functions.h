#pragma once
// cuDNN's functions for operation graphs, found when they are first asked for.

#include <cudnn_graph.h>

#include <string>

namespace tutti::device {

struct CudnnFunctions {
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) error_text = nullptr;
  decltype(&cudnnGetLastErrorString) last_error = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
  std::string problem;  ///< why they cannot be used; empty: all are there
};

const CudnnFunctions& cudnn_functions();

/// Throws DeviceError if a call has failed: what was being done, and cuDNN's own words.
void check_cudnn(cudnnStatus_t status, const char* doing);

}  // namespace tutti::device
