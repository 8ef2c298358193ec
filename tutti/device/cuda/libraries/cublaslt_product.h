#pragma once
// A product of a dense layer as cuBLASLt describes it.

#include "tutti/device/cuda/libraries/cublaslt_functions.h"
#include "tutti/device/libraries.h"

namespace tutti::device {

struct CublasLtTypes {
  cublasComputeType_t compute;
  cudaDataType_t factors, result;
};
/// The type of alpha and beta. Sums have it too.
constexpr cudaDataType_t kCublasLtScale = CUDA_R_32F;

CublasLtTypes cublaslt_types(const LibraryDense& dense);

/// Returns "dw of a dense layer, 8 rows, 64 inputs, 10 outputs, bf16 to f32".
std::string dense_words(const LibraryDense& dense);

/// The descriptors of D = op(A) op(B), with a bias where the layer has one.
struct CublasLtProduct {
  CublasLtOwned<cublasLtMatmulDescOpaque_t> operation;
  CublasLtOwned<cublasLtMatrixLayoutOpaque_t> a, b, result;
  bool first_is_a = false;  ///< A is the `first` of LibraryOperands, B the `second`, or vice versa
};

/// How operands are aligned at least, in bytes.
constexpr uint32_t kCublasLtAlignment = 16;

/// Throws DeviceError.
CublasLtProduct cublaslt_product(const CublasLtFunctions& lt, const LibraryDense& dense);
void set_bias(const CublasLtFunctions& lt, const CublasLtProduct& product, const void* bias);

/// Describes the algorithms that are looked for: those with a moderate workspace and the same bits
/// each time. Throws DeviceError.
CublasLtOwned<cublasLtMatmulPreferenceOpaque_t> cublaslt_preference(const CublasLtFunctions& lt);

/// Reduction schemes that are taken: parts of a sum in f32, which are added in a fixed order, or
/// no parts.
constexpr uint32_t kCublasLtReductions =
    CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

}  // namespace tutti::device
