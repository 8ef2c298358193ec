// CublasLt of a build without cuBLASLt's header.

#include "tutti/base/error.h"
#include "tutti/device/cuda/libraries/cublaslt.h"

namespace tutti::device {

struct CublasLt::Opened {};

CublasLt::CublasLt(const std::string&)
    : problem_("this build is without cuBLASLt: its header cublasLt.h was not found") {}
CublasLt::~CublasLt() = default;

std::string CublasLt::version() const { return "no cuBLASLt: " + problem_; }

std::vector<LibraryWay> CublasLt::ways(const LibraryDense&) {
  return {{.name = "", .refusal = problem_}};
}

std::unique_ptr<LibraryCall> CublasLt::call(const LibraryDense&, const std::string&) {
  throw DeviceError(problem_);
}

}  // namespace tutti::device
