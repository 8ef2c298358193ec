#include "tutti/device/cuda/cuda_entry.h"

#include <span>

#include "tutti/device/cuda/cuda_device.h"
#include "tutti/device/cuda/cuda_facts.h"
#include "tutti/device/cuda/library_functions.h"
#include "tutti/device/cuda_interface.h"

namespace tutti::device {
namespace {

std::vector<DeviceFacts> all_devices() {
  std::vector<DeviceFacts> devices(static_cast<size_t>(cuda_device_count()));
  for (size_t i = 0; i < devices.size(); ++i) devices[i] = cuda_facts(static_cast<int>(i));
  return devices;
}

std::unique_ptr<Device> open_device(int number) {
  return std::make_unique<CudaDevice>(number, library_functions());
}

}  // namespace
}  // namespace tutti::device

const tutti::device::CudaEntry* tutti_cuda_entry() {
  using namespace tutti::device;
  static constexpr CudaEntry kEntry = {.interface = TUTTI_CUDA_INTERFACE,
                                       .versions = cuda_versions,
                                       .devices = all_devices,
                                       .open = open_device};
  return &kEntry;
}
