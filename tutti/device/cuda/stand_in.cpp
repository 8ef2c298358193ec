// A library in the place of libtutti_cuda.so, for cuda_library_test.cpp: whoever builds it says
// which interface it claims to have. It refuses all devices, and it needs nothing of CUDA.

#include "tutti/base/error.h"
#include "tutti/device/cuda/cuda_entry.h"
#include "tutti/device/cuda_interface.h"

namespace tutti::device {
namespace {

CudaVersions versions() { return {.driver = "1.2", .runtime = "3.4", .libraries = "cuDNN 5.6"}; }

std::vector<DeviceFacts> devices() {
  DeviceFacts facts;
  facts.name = "stand-in";
  return {facts};
}

std::unique_ptr<Device> open(int number) {
  throw DeviceError(fmt::format("cuda:{} stands for none", number));
}

constexpr CudaEntry kEntry = {
    .interface = TUTTI_STAND_IN_INTERFACE, .versions = versions, .devices = devices, .open = open};

}  // namespace
}  // namespace tutti::device

const tutti::device::CudaEntry* tutti_cuda_entry() { return &tutti::device::kEntry; }
