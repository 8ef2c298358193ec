#pragma once
// libtutti_cuda.so, which the program loads when a GPU is asked for, and never unloads: all that
// needs CUDA is in it, so that a program without it runs everywhere.

#include <memory>
#include <string>
#include <vector>

#include "tutti/device/device.h"

namespace tutti::device {

/// Returns where the library is looked for: beside the program, in the folder for libraries that
/// belongs to the program's, and, by its name alone, where the system looks.
std::vector<std::string> cuda_library_places();

/// Opens a GPU, by its number among those that this process may see (CUDA_VISIBLE_DEVICES). The
/// library is the first that there is at `places`. Throws DeviceError, which names what is missing
/// and what to do: the library, or one of this build; a driver, or a later one; the device; memory.
std::unique_ptr<Device> open_cuda_device(
    int number, const std::vector<std::string>& places = cuda_library_places());

/// How far a process gets on its way to a GPU, for `tutti doctor`.
struct CudaReport {
  std::string library;  ///< its file; empty: there is none that this program can use
  std::string driver, runtime, libraries;  ///< versions, as in DeviceFacts; empty: not known
  std::vector<DeviceFacts> devices;
  std::string problem;  ///< why there are no devices, and what to do; empty if there are
};

/// Uses no device's memory. Throws nothing that the outside world can cause.
CudaReport cuda_report(const std::vector<std::string>& places = cuda_library_places());

}  // namespace tutti::device
