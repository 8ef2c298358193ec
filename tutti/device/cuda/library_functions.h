#pragma once
#include <span>

#include "tutti/device/device.h"

namespace tutti::device {

/// Returns the kernels that the library was built with. They belong to a room above this one, so
/// the definition is in a file that the build writes (CMakeLists.txt).
std::span<const DeviceFunction> library_functions();

}  // namespace tutti::device
