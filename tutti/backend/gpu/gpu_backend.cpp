#include "tutti/backend/gpu/gpu_backend.h"

#include <algorithm>

#include "tutti/backend/gpu/host_kernel.h"
#include "tutti/backend/gpu/own/own_kernels.h"

namespace tutti::backend {

GpuBackend::GpuBackend(device::Device& device, const Backend& host, GpuKernels use)
    : device_(device), host_(host), use_(use), mirrors_(std::make_unique<device::Mirrors>(device)) {
}

std::vector<KernelCandidate> GpuBackend::candidates(const KernelRequest& request) const {
  std::vector<KernelCandidate> found;
  if (use_ != GpuKernels::host_only) found = own_kernels().candidates(request, device_);
  if (use_ == GpuKernels::own_only) {
    found.push_back(
        {.name = "host",
         .refusal = "no kernel on the device (plan.host_kernels = true takes the host's)",
         .in = {},
         .out = {},
         .make = {}});
    return found;
  }
  KernelRequest alone = request;
  alone.team = 1;
  for (KernelCandidate& of_host : host_.candidates(alone)) {
    KernelCandidate& c = found.emplace_back(host_candidate(std::move(of_host), alone, device_));
    if (use_ == GpuKernels::prefer_own) c.speed = std::max(c.speed, KernelSpeed::slow);
  }
  return found;
}

std::vector<Layout> GpuBackend::activation_layouts(const Shape& shape, DType) const {
  if (shape.rank() < 3) return {Layout::plain()};
  if (shape.rank() == 3) return {Layout::channels_last(3)};
  return {Layout::channels_last(shape.rank()), Layout::plain()};
}

}  // namespace tutti::backend
