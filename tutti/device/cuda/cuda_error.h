#pragma once
// The one way from an error of the CUDA runtime to a DeviceError.

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

namespace tutti::device {

/// Returns "host n07".
std::string host_words();
/// Returns "host n07, cuda:0 (NVIDIA H100 80GB HBM3)".
std::string device_words(int number, std::string_view name);
/// Returns which devices the process was told to see: "CUDA_VISIBLE_DEVICES=0,1".
std::string visible_words();
/// Returns "9000.5 MiB".
std::string mib(size_t bytes);

/// Returns whether an error stays: nothing that this process asks of the device succeeds after it.
bool is_lost(cudaError_t error);

/// Throws DeviceError if a call has failed: where, what was being done, the error and the remedy.
void check(cudaError_t error, std::string_view where, std::string_view doing);

}  // namespace tutti::device
