#pragma once
// cuDNN and cuBLASLt on a device of this process.

#include <memory>
#include <string>
#include <vector>

#include "tutti/device/cuda/cuda_device.h"
#include "tutti/device/cuda/libraries/cublaslt.h"
#include "tutti/device/cuda/libraries/cudnn.h"

namespace tutti::device {

/// Returns "cuDNN 9.19.0, cuBLASLt 13.1.0", or why one is not there. It needs no device.
std::string library_versions();

/// Each of the two may be missing; it then says why.
class CudaLibraries : public Libraries {
 public:
  /// Opens both on `device`, which lives longer.
  explicit CudaLibraries(CudaDevice& device);

  bool any() const override { return convolutions_.is_there() || dense_.is_there(); }
  std::string versions() const override;
  std::vector<LibraryWay> ways(const LibraryConvolution& convolution) override;
  std::vector<LibraryWay> ways(const LibraryDense& dense) override;
  std::unique_ptr<LibraryCall> call(const LibraryConvolution& convolution,
                                    const std::string& way) override;
  std::unique_ptr<LibraryCall> call(const LibraryDense& dense, const std::string& way) override;

 private:
  CudaDevice& device_;
  Cudnn convolutions_;
  CublasLt dense_;
};

}  // namespace tutti::device
