#pragma once
// Makes the back end that a verb computes with: the CPU's, or that of a device, which it opens.

#include <memory>
#include <string>

#include "tutti/backend/backend.h"
#include "tutti/base/json_forward.h"
#include "tutti/config/config.h"
#include "tutti/device/device.h"

namespace tutti::cli {

/// The back end and what it needs. All that is made with it must end before it.
struct ComputeBackend {
  std::unique_ptr<device::Device> device{};       ///< null: the CPU
  std::unique_ptr<backend::Backend> host{};       ///< the CPU's
  std::unique_ptr<backend::Backend> on_device{};  ///< null: the CPU

  const backend::Backend& backend() const { return on_device ? *on_device : *host; }
};

/// Opens run.device and logs which one that is. Throws DeviceError where there is none, with what
/// is missing and what to do, and ConfigError for run.precision = "tf32" where no library of a GPU
/// computes, and for a seed of the emulated device (kEmulatedSeedVariable) that is no number.
ComputeBackend compute_backend(const config::RunConfig& config);

/// Returns "NVIDIA H100 80GB HBM3 (cuda 0, driver 580.159, runtime 13.0), 79.6 GiB".
std::string device_line(const device::DeviceFacts& facts);
/// Returns the same for programs: kind, number, name, driver, runtime, memory_bytes.
Json device_json(const device::DeviceFacts& facts);

}  // namespace tutti::cli
