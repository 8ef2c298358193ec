#pragma once
// A kernel for one line of text, on operands in memory of the device that hold small numbers.

#include <memory>
#include <string>
#include <vector>

#include "tests/gpu/device_check/checks.h"

namespace tutti::device_check {

class TimedKernel {
 public:
  /// Takes channels last where the backend offers it. Throws DeviceError if the backend has no
  /// kernel of that name. The backend must outlive it.
  TimedKernel(const std::string& line, const backend::Backend& backend, const std::string& kernel);

  void put(device::Stream& stream);
  /// Returns the bytes of all operands, each counted once.
  size_t bytes() const { return bytes_; }
  double flop() const { return flop_; }

 private:
  device::Memory filled(const TensorDesc& desc);

  const backend::Backend& backend_;
  backend::OpCase case_;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<backend::Kernel> kernel_;
  std::vector<device::Memory> memory_;
  device::Memory workspace_, numbers_;
  std::vector<void*> in_, out_;
  size_t bytes_ = 0;
  double flop_ = 0;
};

/// Returns the request for a whole batch, with batched operands channels last where the backend
/// offers it. The problem must outlive the request.
backend::KernelRequest request_for(const backend::OpProblem& problem,
                                   const backend::Backend& backend);

/// Returns the names of the kernels that the backend offers for the line, best guess first.
std::vector<std::string> kernels_for(const std::string& line, const backend::Backend& backend);

}  // namespace tutti::device_check
