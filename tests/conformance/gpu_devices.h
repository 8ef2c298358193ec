#pragma once
// Emulated devices with the own kernels, and what is asked of the cases on them.

#include <memory>
#include <string>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/gpu/gpu_backend.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/device/emulated/emulated_device.h"

namespace tutti {

/// Returns the first word of a case's line.
inline std::string op_word(const std::string& line) { return line.substr(0, line.find(' ')); }

/// An emulated device and the own kernels for it.
struct Emulated {
  backend::CpuBackend host;
  std::unique_ptr<device::EmulatedDevice> device;
  backend::GpuBackend backend;
  explicit Emulated(uint64_t seed)
      : device(device::make_emulated_device({.seed = seed, .functions = backend::own_functions()})),
        backend(*device, host, backend::GpuKernels::own_only) {}
};

}  // namespace tutti
