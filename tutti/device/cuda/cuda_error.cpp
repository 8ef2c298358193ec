#include "tutti/device/cuda/cuda_error.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "tutti/base/error.h"

namespace tutti::device {
namespace {

/// Returns what to do about an error of which the runtime's own words do not say it.
std::string_view remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorDevicesUnavailable:
      return "another process uses it alone (nvidia-smi -q -d COMPUTE shows the compute mode, "
             "nvidia-smi the processes): wait for its end, or take another device";
    case cudaErrorMemoryAllocation:
      return "its memory is in use, perhaps by other processes: nvidia-smi shows them";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
      return "libtutti_cuda.so holds code for architecture " TUTTI_CUDA_ARCHITECTURES
             " and later ones of its driver: build it with -DTUTTI_CUDA_ARCHITECTURES for this "
             "device (90 for sm_90)";
    case cudaErrorSystemNotReady:
      return "a service of the node is not ready: where GPUs are joined by NVSwitch, "
             "nvidia-fabricmanager must run";
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return "the libraries of the driver and its kernel module differ: after an update of the "
             "driver the node must start again; a container must not bring a libcuda of its own";
    case cudaErrorOperatingSystem:
    case cudaErrorInitializationError:
      return "/dev/nvidia* may not be there, or not be allowed: in a container, start it with the "
             "GPU; under Slurm, ask for one (--gpus)";
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return "the hardware fails (nvidia-smi -q -d ECC, dmesg): leave this device out and resume "
             "from the last checkpoint";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureWrongThread:
    case cudaErrorCapturedEvent:
      return "work that cannot be recorded was put on a stream while it was";
    default: return "dmesg may say more (lines with Xid); if it comes again, it is a bug";
  }
}

}  // namespace

std::string host_words() {
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  return fmt::format("host {}", name.data());
}

std::string device_words(int number, std::string_view name) {
  return fmt::format("{}, cuda:{} ({})", host_words(), number, name);
}

std::string visible_words() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible ? fmt::format("CUDA_VISIBLE_DEVICES={}", visible)
                 : "CUDA_VISIBLE_DEVICES is not set";
}

std::string mib(size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

bool is_lost(cudaError_t error) {
  constexpr int kContained = 226, kTensorMemoryLeak = 721;  // not in the headers of CUDA 12.0
  switch (static_cast<int>(error)) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case kContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case kTensorMemoryLeak:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

void check(cudaError_t error, std::string_view where, std::string_view doing) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // or the next call would be blamed for it
  throw DeviceError(fmt::format("{}: {}: {} ({}): {}", where, doing, cudaGetErrorName(error),
                                cudaGetErrorString(error), remedy(error)));
}

}  // namespace tutti::device
