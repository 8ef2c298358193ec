#pragma once
// The parts of tutti_device_check, a program without oneDNN and MPI that says of a device whether
// the kernels for it are right and how fast they are. tests/gpu/on_device runs it on a machine with
// unknown software, so each part prints what it finds at once, a line each.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/backend/conformance/op_case.h"
#include "tutti/backend/gpu/gpu_backend.h"
#include "tutti/backend/reference/reference.h"
#include "tutti/device/device.h"

namespace tutti::device_check {

/// Exit codes of a part. `not_run` comes with a line "not run: REASON".
enum class Outcome : int { passed = 0, failed = 1, not_run = 77 };

/// A device with its backend, whose host is the reference.
struct Target {
  std::unique_ptr<device::Device> device;
  backend::ReferenceBackend host;
  backend::GpuBackend backend;
  bool small;  ///< shapes and counts for an emulated device, or for one under a sanitizer

  Target(std::unique_ptr<device::Device> d, bool s)
      : device(std::move(d)), backend(*device, host, backend::GpuKernels::own_only), small(s) {}
};

/// A backend's kernels whose names `wanted` accepts. The backend must outlive it.
class SomeKernels final : public backend::Backend {
 public:
  using Wanted = std::function<bool(std::string_view name)>;
  SomeKernels(const backend::Backend& all, Wanted wanted) : all_(all), wanted_(std::move(wanted)) {}

  std::string_view name() const override { return all_.name(); }
  std::vector<backend::KernelCandidate> candidates(
      const backend::KernelRequest& request) const override {
    std::vector<backend::KernelCandidate> found = all_.candidates(request);
    std::erase_if(found, [&](const auto& c) { return !wanted_(c.name); });
    return found;
  }
  std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const override {
    return all_.activation_layouts(shape, dtype);
  }
  device::Device* device() const override { return all_.device(); }
  device::Mirrors* mirrors() const override { return all_.mirrors(); }

 private:
  const backend::Backend& all_;
  Wanted wanted_;
};

inline bool is_own(std::string_view kernel) { return kernel.starts_with("gpu:"); }

/// Says what the device is, and tries one copy there and back and one kernel.
Outcome facts(Target& target);

/// Writes what the own kernels make of the conformance lines into a file, a line for each kernel
/// and layout: the hash of all bits, and the first values. For the emulated device.
Outcome record_own_kernels(Target& target, const std::string& file);

/// Compares the own kernels with the reference, twice with the same bits, once recorded, and with
/// the file. Kernels that call functions such as exp need not have the file's bits.
Outcome check_own_kernels(Target& target, const std::string& file);

/// Compares the kernels of libraries with the own one for the same layer, on layers of the networks
/// that docs/gpu.md names; each twice, with the same bits.
Outcome check_libraries(Target& target);

/// Measures copies, launches, large products of libraries, and single kernels with the bytes that
/// they must move.
Outcome measure_rates(Target& target);

/// Runs the own kernel for a line twice.
Outcome run_kernel(Target& target, const std::string& line);

}  // namespace tutti::device_check
