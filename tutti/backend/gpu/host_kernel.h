#pragma once
// Kernels of the host in the order of a device's stream.

#include "tutti/backend/backend.h"
#include "tutti/device/device.h"

namespace tutti::backend {

/// Returns the candidate "host:NAME" for a candidate of a backend of the host, which was asked for
/// the whole batch and a team of one. Its kernel puts host work on the stream: one call for the
/// whole batch. Unless host work reads memory of the device (DeviceFacts), operands are copied to
/// pinned memory of the kernel's own before it and results back after it; making the kernel throws
/// DeviceError if there is none. A refusal stays one.
KernelCandidate host_candidate(KernelCandidate of_host, const KernelRequest& request,
                               device::Device& device);

}  // namespace tutti::backend
