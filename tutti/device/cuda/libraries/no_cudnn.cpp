// Cudnn of a build without cuDNN's headers.

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/device/cuda/libraries/cudnn.h"

namespace tutti::device {

namespace {
constexpr const char* kWithout =
    "this build is without cuDNN: CMake found no headers of a version that it takes";
}

struct Cudnn::Opened {};

std::string cudnn_version() { return fmt::format("no cuDNN: {}", kWithout); }

Cudnn::Cudnn(const CudnnDevice&) : problem_(kWithout) {}
Cudnn::~Cudnn() = default;

std::string Cudnn::version() const { return cudnn_version(); }

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
