#include "tutti/device/cuda/libraries/libraries.h"

#include <fmt/format.h>

#include "tutti/base/error.h"

namespace tutti::device {
namespace {

/// The call of a library on a device: it is refused on a lost one, and counts as a launch.
class DeviceCall : public LibraryCall {
 public:
  DeviceCall(CudaDevice& device, std::unique_ptr<LibraryCall> call)
      : device_(device), call_(std::move(call)) {}
  void put(Stream& stream, const LibraryOperands& operands) override {
    device_.enter();
    try {
      call_->put(stream, operands);
    } catch (const DeviceError& failed) {
      throw DeviceError(fmt::format("{}: {}", device_.words(), failed.what()));
    }
    ++device_.put_on(static_cast<cudaStream_t>(stream.native())).launches;
  }

 private:
  CudaDevice& device_;
  std::unique_ptr<LibraryCall> call_;
};

CudaDevice& entered(CudaDevice& device) {
  device.enter();
  return device;
}

}  // namespace

std::string library_versions() {
  return fmt::format("{}, {}", cudnn_version(), cublaslt_version());
}

CudaLibraries::CudaLibraries(CudaDevice& device)
    : device_(entered(device)), convolutions_({.words = device.words(), .properties = ""}) {}

std::string CudaLibraries::versions() const {
  return fmt::format("{}, {}", convolutions_.version(), dense_.version());
}

std::vector<LibraryWay> CudaLibraries::ways(const LibraryConvolution& convolution) {
  device_.enter();
  return convolutions_.ways(convolution);
}

std::vector<LibraryWay> CudaLibraries::ways(const LibraryDense& dense) {
  device_.enter();
  return dense_.ways(dense);
}

std::unique_ptr<LibraryCall> CudaLibraries::call(const LibraryConvolution& convolution,
                                                 const std::string& way) {
  device_.enter();
  return std::make_unique<DeviceCall>(device_, convolutions_.call(convolution, way));
}

std::unique_ptr<LibraryCall> CudaLibraries::call(const LibraryDense& dense,
                                                 const std::string& way) {
  device_.enter();
  return std::make_unique<DeviceCall>(device_, dense_.call(dense, way));
}

}  // namespace tutti::device
