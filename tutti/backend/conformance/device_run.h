#pragma once
// Runs a kernel on a device for OpRun. Private to it.

#include <array>
#include <memory>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/backend/conformance/guarded_operand.h"
#include "tutti/backend/conformance/op_run.h"
#include "tutti/device/device.h"

namespace tutti::backend {

class DeviceRun {
 public:
  /// The backend must outlive it.
  DeviceRun(const Backend& backend, std::unique_ptr<Kernel> kernel,
            const std::vector<GuardedOperand>& in, const std::vector<GuardedOperand>& out,
            const OpRunOptions& options);

  /// Copies the operands to the device, guards included, runs the kernel, and copies them back. The
  /// workspace is NaN before. Throws DeviceError.
  void run(const std::vector<GuardedOperand>& in, const std::vector<GuardedOperand>& out);
  /// Returns whether the last run has left what lies around the workspace as it was.
  bool workspace_intact() const { return intact_; }

 private:
  void put_kernel();
  /// Returns where the guards before and behind the workspace begin.
  std::array<std::byte*, 2> workspace_guards() const {
    return {workspace_.data(), workspace_.data() + workspace_.bytes() - kGuard};
  }

  const Backend& backend_;
  std::unique_ptr<Kernel> kernel_;
  StepInfo step_;
  bool recorded_;
  std::vector<device::Memory> memory_;  ///< inputs, then outputs, as GuardedOperand::memory
  device::Memory workspace_, numbers_;
  std::vector<void*> in_, out_;
  std::unique_ptr<device::Stream> stream_;
  bool intact_ = true;
};

}  // namespace tutti::backend
