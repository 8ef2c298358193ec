#pragma once
// The one function by which the program and libtutti_cuda.so meet. Both are of one build: what they
// share are the classes of device.h and the arguments of the own kernels.

#include <memory>
#include <string>
#include <vector>

#include "tutti/device/device.h"

namespace tutti::device {

/// Versions as NVIDIA writes them: of the driver, "580.159", and of the CUDA runtime, "13.0".
struct CudaVersions {
  std::string driver;  ///< empty: there is no driver
  std::string runtime;
  std::string libraries;  ///< as in DeviceFacts
};

/// Its functions throw DeviceError, which the program catches as its own.
struct CudaEntry {
  /// TUTTI_CUDA_INTERFACE of the library's build. Nothing else may be used if it is another one.
  const char* interface;
  CudaVersions (*versions)();
  /// Returns all devices that this process may see, without using one. Throws DeviceError if there
  /// is none, with the reason.
  std::vector<DeviceFacts> (*devices)();
  /// Opens one of them. The library must stay loaded as long as anything that comes from it lives.
  std::unique_ptr<Device> (*open)(int number);
};

}  // namespace tutti::device

/// Returns the library's functions, which live as long as the library is loaded.
extern "C" [[gnu::visibility("default")]] const tutti::device::CudaEntry* tutti_cuda_entry();
