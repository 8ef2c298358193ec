#pragma once
// A product as the stand-in of cuBLASLt knows it: what may be asked for, and its result.

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace tutti::device {

/// A matrix that lies column by column.
struct StandInLayout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t stride;  ///< elements from one column to the next

  size_t element_bytes() const { return type == CUDA_R_32F ? 4 : 2; }
  size_t bytes() const {
    return (static_cast<size_t>(stride) * (columns - 1) + rows) * element_bytes();
  }
  size_t at(uint64_t row, uint64_t column) const {
    return static_cast<size_t>(stride) * column + row;
  }
};

struct StandInOperation {
  cublasComputeType_t compute;
  int32_t a_is = CUBLAS_OP_N, b_is = CUBLAS_OP_N, pointers = CUBLASLT_POINTER_MODE_HOST;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  int32_t bias_type = -1;  ///< -1: the result's
  const void* bias = nullptr;

  bool transposes_a() const { return a_is == CUBLAS_OP_T; }
  bool transposes_b() const { return b_is == CUBLAS_OP_T; }
  bool adds_bias() const { return epilogue == CUBLASLT_EPILOGUE_BIAS; }
};

/// D = op(A) op(B), [rows, columns], each element a sum of `sums` products.
struct StandInProduct {
  StandInOperation operation;
  StandInLayout a, b, c, d;
  uint64_t rows = 0, columns = 0, sums = 0;
};

/// Sets the extents. Returns why the descriptors are at odds; empty: they are not.
const char* complete(StandInProduct& product);

/// Computes it in double precision; tf32 rounds the factors.
void multiply(const StandInProduct& product, const void* a, const void* b, void* d);

}  // namespace tutti::device
