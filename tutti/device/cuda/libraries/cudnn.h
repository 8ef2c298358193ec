#pragma once
// cuDNN's convolutions. The library is opened when it is used; no header of its own is needed here.

#include <memory>
#include <string>
#include <vector>

#include "tutti/device/libraries.h"

namespace tutti::device {

/// Returns "cuDNN 9.19.0", or "no cuDNN: " and the reason. It needs no device.
std::string cudnn_version();

struct CudnnDevice {
  std::string words;  ///< the device, in errors
  /// A device that is not here, as DeviceFacts::properties describes it: cuDNN plans for it without
  /// a driver. Empty: the thread's current device, on which calls run.
  std::string properties;
};

/// Without cuDNN each call says why there is none. Not thread-safe.
class Cudnn {
 public:
  explicit Cudnn(const CudnnDevice& device);
  ~Cudnn();

  /// Returns cudnn_version(), or the reason why the device cannot be used.
  std::string version() const;
  bool is_there() const { return problem_.empty(); }
  /// Returns the ways of Libraries::ways(). Refused are those without the same bits each time,
  /// those with rounded factors for f32 or sums of less than f32, and those that are compiled at
  /// run time.
  std::vector<LibraryWay> ways(const LibraryConvolution& convolution);
  /// Returns a way by its name alone. Throws DeviceError if this cuDNN has no such way.
  LibraryWay way(const LibraryConvolution& convolution, const std::string& name);
  /// Returns the call of a way that is offered. Throws DeviceError otherwise, and if the device is
  /// not here.
  std::unique_ptr<LibraryCall> call(const LibraryConvolution& convolution, const std::string& way);

 private:
  struct Opened;
  std::string problem_;
  std::unique_ptr<Opened> opened_;
};

}  // namespace tutti::device
