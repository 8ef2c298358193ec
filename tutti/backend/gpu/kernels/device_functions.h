#pragma once
// The device code of the own kernels, by family: each list stands at the end of kernels/FAMILY.cu,
// which is compiled for the emulated device and for real ones.

#include <span>

#include "tutti/device/device.h"

namespace tutti::backend {

std::span<const device::DeviceFunction> batch_norm_functions();
std::span<const device::DeviceFunction> channel_sums_functions();
std::span<const device::DeviceFunction> copies_functions();
std::span<const device::DeviceFunction> gradients_functions();
std::span<const device::DeviceFunction> losses_functions();
std::span<const device::DeviceFunction> pointwise_functions();
std::span<const device::DeviceFunction> pools_functions();
std::span<const device::DeviceFunction> products_functions();
std::span<const device::DeviceFunction> updates_functions();

/// Returns the functions of all families, with names that differ.
std::span<const device::DeviceFunction> own_functions();

}  // namespace tutti::backend
