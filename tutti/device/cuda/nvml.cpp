#include "tutti/device/cuda/nvml.h"

#include <dlfcn.h>

#include <array>

namespace tutti::device {
namespace {

/// nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3.
struct PciInfo {
  char bus_of_old[16];
  unsigned domain, bus, device, product, subsystem;
  char bus_id[32];
};

/// The functions in use; all are there, or none. They return 0 if they have done what they should.
struct Library {
  int (*init)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device)(const char*, NvmlHandle**) = nullptr;
  int (*pci_info)(NvmlHandle*, PciInfo*) = nullptr;
  int (*millijoules)(NvmlHandle*, unsigned long long*) = nullptr;
  bool usable = false;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// It stays loaded: NVML's own data would have to end before it.
const Library& library() {
  static const Library loaded = [] {
    Library l;
    void* const file = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    l.usable = file && find(file, "nvmlInit_v2", l.init) &&
               find(file, "nvmlSystemGetDriverVersion", l.driver_version) &&
               find(file, "nvmlDeviceGetHandleByPciBusId_v2", l.device) &&
               find(file, "nvmlDeviceGetPciInfo_v3", l.pci_info) &&
               find(file, "nvmlDeviceGetTotalEnergyConsumption", l.millijoules) && l.init() == 0;
    return l;
  }();
  return loaded;
}

}  // namespace

std::string nvml_driver_version() {
  std::array<char, 96> text = {};
  if (!library().usable || library().driver_version(text.data(), text.size()) != 0) return "";
  return text.data();
}

NvmlDevice::NvmlDevice(const std::string& bus) {
  if (library().usable && library().device(bus.c_str(), &device_) != 0) device_ = nullptr;
}

uint32_t NvmlDevice::product() const {
  PciInfo info = {};
  return device_ && library().pci_info(device_, &info) == 0 ? info.product : 0;
}

double NvmlDevice::joules() const {
  unsigned long long used = 0;
  return device_ && library().millijoules(device_, &used) == 0 ? static_cast<double>(used) / 1000
                                                               : -1;
}

}  // namespace tutti::device
