#pragma once
// Launches of kernels with their struct of arguments.

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "tutti/base/error.h"
#include "tutti/device/device.h"

namespace tutti::device {

/// Puts a kernel on the stream. Args is the struct that the kernel takes. Throws DeviceError.
template <class Args>
void launch(Stream& stream, const DeviceFunction& function, Dim3 grid, const Args& args) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= kMostArgumentBytes);
  CHECK(function.argument_bytes == sizeof(Args), "{} takes {} bytes of arguments, not {}",
        function.name, function.argument_bytes, sizeof(Args));
  stream.launch({&function, grid, &args});
}

/// Returns the device's kernel of that name; one that does not exist is a bug.
inline const DeviceFunction& function_named(const Device& device, std::string_view name) {
  const auto functions = device.functions();
  const auto found = std::ranges::find(functions, name, &DeviceFunction::name);
  CHECK(found != functions.end(), "the device has no kernel {}", name);
  return *found;
}

}  // namespace tutti::device
