#pragma once
// cuBLASLt's functions that are in use, as cublasLt.h declares them.

#include <cublasLt.h>

#include <memory>
#include <string>
#include <string_view>

namespace tutti::device {

struct CublasLtFunctions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetStatusName) status_name = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_product = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_product = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_product = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoInit) begin_algorithm = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) check_algorithm = nullptr;
  decltype(&cublasLtMatmulAlgoConfigSetAttribute) set_algorithm = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) get_algorithm = nullptr;
  decltype(&cublasLtMatmulAlgoCapGetAttribute) get_ability = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
  std::string problem;  ///< why they cannot be used; empty: all are there
};

/// Finds them in a library that is named as in CublasLt's constructor.
CublasLtFunctions cublaslt_functions(const std::string& library);

/// Returns "cuBLASLt 13.1.0".
std::string cublaslt_version(const CublasLtFunctions& lt);

/// Throws DeviceError if a call has failed: what was being done, the library's word and what to do.
void check_cublaslt(const CublasLtFunctions& lt, cublasStatus_t status, std::string_view doing);

/// Owns an object of the library, with the function that ends it.
template <class T>
using CublasLtOwned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;

}  // namespace tutti::device
