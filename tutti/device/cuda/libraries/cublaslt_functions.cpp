#include "tutti/device/cuda/libraries/cublaslt_functions.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/device/cuda/libraries/opened_library.h"

namespace tutti::device {
namespace {

std::string_view remedy_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "it finds no device, or the device has no memory left for it: `tutti doctor` says "
             "which devices there are, nvidia-smi what uses them";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "there is no memory left for it: nvidia-smi shows what uses the device's";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "this version of it is not for this device";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the device has failed, now or before: dmesg may say more (lines with Xid)";
    default: return "if it comes again, it is a bug";
  }
}

}  // namespace

CublasLtFunctions cublaslt_functions(const std::string& name) {
  OpenedLibrary library(name.empty() ? fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR) : name);
  CublasLtFunctions f;
  library.find("cublasLtCreate", f.create);
  library.find("cublasLtDestroy", f.destroy);
  library.find("cublasLtGetStatusName", f.status_name);
  library.find("cublasLtGetVersion", f.version);
  library.find("cublasLtMatrixLayoutCreate", f.create_layout);
  library.find("cublasLtMatrixLayoutDestroy", f.destroy_layout);
  library.find("cublasLtMatmulDescCreate", f.create_product);
  library.find("cublasLtMatmulDescDestroy", f.destroy_product);
  library.find("cublasLtMatmulDescSetAttribute", f.set_product);
  library.find("cublasLtMatmulPreferenceCreate", f.create_preference);
  library.find("cublasLtMatmulPreferenceDestroy", f.destroy_preference);
  library.find("cublasLtMatmulPreferenceSetAttribute", f.set_preference);
  library.find("cublasLtMatmulAlgoGetHeuristic", f.heuristic);
  library.find("cublasLtMatmulAlgoInit", f.begin_algorithm);
  library.find("cublasLtMatmulAlgoCheck", f.check_algorithm);
  library.find("cublasLtMatmulAlgoConfigSetAttribute", f.set_algorithm);
  library.find("cublasLtMatmulAlgoConfigGetAttribute", f.get_algorithm);
  library.find("cublasLtMatmulAlgoCapGetAttribute", f.get_ability);
  library.find("cublasLtMatmul", f.multiply);
  f.problem = library.problem();
  if (f.problem.empty() && f.version() / 10000 != CUBLAS_VER_MAJOR)
    f.problem = fmt::format("{} was found, and version {} is needed", cublaslt_version(f),
                            CUBLAS_VER_MAJOR);
  return f;
}

std::string cublaslt_version(const CublasLtFunctions& lt) {
  const size_t version = lt.version();  // 130100 is 13.1.0
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void check_cublaslt(const CublasLtFunctions& lt, cublasStatus_t status, std::string_view doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("{}, {}: {}: {}", cublaslt_version(lt), doing,
                                lt.status_name(status), remedy_of(status)));
}

}  // namespace tutti::device
