#pragma once
// The GPU backend: kernels of the device's libraries, own ones, and the host's in the order of the
// device's streams.

#include <memory>
#include <string_view>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/backend/gpu/library/library_kernels.h"
#include "tutti/device/device.h"
#include "tutti/device/mirrors.h"

namespace tutti::backend {

/// The kernels that a GPU backend offers.
enum class GpuKernels : uint8_t {
  prefer_own,  ///< the libraries' and own ones first, then the host's, which are slow
  own_only,    ///< the libraries' and own ones; ops that have none are refused
  host_only,   ///< the host's alone, in the host's order: a plan then has the bits of the host's
               ///< plan for one thread
};

/// Not thread-safe, as its device.
class GpuBackend final : public Backend {
 public:
  /// `device` and `host` must outlive it and all kernels that it makes. Libraries may round f32
  /// factors to 10 bits where `tf32`, which needs a device with libraries.
  GpuBackend(device::Device& device, const Backend& host, GpuKernels use, bool tf32 = false);

  /// Returns the device's kind: "cuda", "emulated".
  std::string_view name() const override { return device_.facts().kind; }
  /// Candidates have the names that libraries give, "gpu:..." and, on the host, "host:" and the
  /// name that the host gives.
  std::vector<KernelCandidate> candidates(const KernelRequest& request) const override;
  /// Sequences, images and volumes: channels last, or plain but for sequences. Everything else
  /// plain.
  std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const override;
  /// Returns more than any batch needs: a tile is the whole batch.
  size_t tile_bytes() const override { return size_t{1} << 60; }
  /// The host's kernels alone have the host's plan.
  bool repeats_cheap_ops() const override { return use_ == GpuKernels::host_only; }
  bool joins_moves() const override { return use_ != GpuKernels::host_only; }
  device::Device* device() const override { return &device_; }
  device::Mirrors* mirrors() const override { return mirrors_.get(); }

 private:
  device::Device& device_;
  const Backend& host_;
  GpuKernels use_;
  std::unique_ptr<device::Mirrors> mirrors_;
  std::unique_ptr<LibraryKernels> library_;  // null: the device has none, or they do not count
};

}  // namespace tutti::backend
