#pragma once
// NVML, the library of the driver that nvidia-smi asks. It is loaded where it is found, and all
// that it says may be missing.

#include <cstdint>
#include <string>

namespace tutti::device {

/// Returns the version of the driver, "580.159"; empty: not known.
std::string nvml_driver_version();

struct NvmlHandle;

/// A device by its place on the bus, "0000:1A:00.0". Never throws.
class NvmlDevice {
 public:
  explicit NvmlDevice(const std::string& bus);
  /// Returns the device's and the vendor's number, 0x233010DE; 0: not known.
  uint32_t product() const;
  /// Returns the energy used since the driver was loaded, in joules; negative: not known.
  double joules() const;

 private:
  NvmlHandle* device_ = nullptr;
};

}  // namespace tutti::device
