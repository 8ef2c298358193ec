// Cudnn of a build without cuDNN's headers.

#include "tutti/base/error.h"
#include "tutti/device/cuda/libraries/cudnn.h"

namespace tutti::device {

struct Cudnn::Opened {};

Cudnn::Cudnn(const CudnnDevice&)
    : problem_("this build is without cuDNN: CMake found no headers of a version that it takes") {}
Cudnn::~Cudnn() = default;

std::string Cudnn::version() const { return "no cuDNN: " + problem_; }

std::vector<LibraryWay> Cudnn::ways(const LibraryConvolution&) {
  return {{.name = "", .refusal = problem_}};
}

LibraryWay Cudnn::way(const LibraryConvolution&, const std::string&) {
  throw DeviceError(problem_);
}

std::unique_ptr<LibraryCall> Cudnn::call(const LibraryConvolution&, const std::string&) {
  throw DeviceError(problem_);
}

}  // namespace tutti::device
