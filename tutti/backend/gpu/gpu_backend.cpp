#include "tutti/backend/gpu/gpu_backend.h"

#include <algorithm>
#include <iterator>

#include "tutti/backend/gpu/host_kernel.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/base/error.h"

namespace tutti::backend {

GpuBackend::GpuBackend(device::Device& device, const Backend& host, GpuKernels use, bool tf32)
    : device_(device), host_(host), use_(use), mirrors_(std::make_unique<device::Mirrors>(device)) {
  CHECK(!tf32 || device.libraries(), "tf32 without libraries");
  if (use != GpuKernels::host_only && device.libraries())
    library_ = std::make_unique<LibraryKernels>(device, *mirrors_, tf32);
}

std::vector<KernelCandidate> GpuBackend::candidates(const KernelRequest& request) const {
  std::vector<KernelCandidate> found;
  if (library_) found = library_->candidates(request);
  if (use_ != GpuKernels::host_only)
    std::ranges::move(own_kernels().candidates(request, device_), std::back_inserter(found));
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

std::vector<Layout> GpuBackend::activation_layouts(const Shape& shape, DType dtype) const {
  // Labels [N, positions] lie as their scores' positions do, which own kernels read in that order.
  const bool labels = dtype == DType::i32 && use_ != GpuKernels::host_only;
  if (shape.rank() < 3 || labels) return {Layout::plain()};
  if (shape.rank() == 3) return {Layout::channels_last(3)};
  return {Layout::channels_last(shape.rank()), Layout::plain()};
}

}  // namespace tutti::backend
