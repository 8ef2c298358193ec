// CublasLt of a build without cuBLASLt's header.

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/device/cuda/libraries/cublaslt.h"

namespace tutti::device {

namespace {
constexpr const char* kWithout =
    "this build is without cuBLASLt: its header cublasLt.h was not found";
}

struct CublasLt::Opened {};

std::string cublaslt_version() { return fmt::format("no cuBLASLt: {}", kWithout); }

CublasLt::CublasLt(const std::string&) : problem_(kWithout) {}
CublasLt::~CublasLt() = default;

std::string CublasLt::version() const { return cublaslt_version(); }

std::vector<LibraryWay> CublasLt::ways(const LibraryDense&) {
  return {{.name = "", .refusal = problem_}};
}

std::unique_ptr<LibraryCall> CublasLt::call(const LibraryDense&, const std::string&) {
  throw DeviceError(problem_);
}

}  // namespace tutti::device
