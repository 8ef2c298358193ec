#pragma once
#include <string>
#include <vector>

#include "tutti/device/cuda/cuda_entry.h"
#include "tutti/device/device.h"

namespace tutti::device {

CudaVersions cuda_versions();

/// Returns how many devices this process may see, at least one. Throws DeviceError if it cannot use
/// any: there is no driver, it is too old, or it shows no device.
int cuda_device_count();

/// Returns "0000:1A:00.0".
std::string cuda_bus(int number);

/// `number` is below cuda_device_count(). Does not use the device's memory.
DeviceFacts cuda_facts(int number);

}  // namespace tutti::device
