#include "tutti/device/cuda/libraries/cublaslt_product.h"

#include <fmt/format.h>

#include <array>

#include "tutti/base/error.h"

namespace tutti::device {
namespace {

/// NVIDIA recommends it for Hopper and later ones; for earlier ones it recommends 4 MiB, which are
/// in it.
constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;

template <class T>
void set_operation(const CublasLtFunctions& lt, const CublasLtProduct& product,
                   cublasLtMatmulDescAttributes_t attribute, T value) {
  check_cublaslt(lt, lt.set_product(product.operation.get(), attribute, &value, sizeof(value)),
                 "describing a product");
}

CublasLtOwned<cublasLtMatmulDescOpaque_t> operation(const CublasLtFunctions& lt,
                                                    cublasComputeType_t compute) {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublaslt(lt, lt.create_product(&made, compute, kCublasLtScale), "describing a product");
  return {made, lt.destroy_product};
}

/// A matrix that lies row by row, without gaps.
CublasLtOwned<cublasLtMatrixLayoutOpaque_t> matrix(const CublasLtFunctions& lt, cudaDataType_t type,
                                                   int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublaslt(lt,
                 lt.create_layout(&made, type, static_cast<uint64_t>(columns),
                                  static_cast<uint64_t>(rows), columns),
                 "describing a matrix");
  return {made, lt.destroy_layout};
}

}  // namespace

/// CUBLAS_COMPUTE_32F takes f32 factors as they are. The pedantic one is not needed: it differs for
/// complex numbers, and in that it keeps factors of 16 bits from the tensor cores.
CublasLtTypes cublaslt_types(const LibraryDense& dense) {
  switch (dense.type) {
    case LibraryType::f32: return {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F};
    case LibraryType::tf32: return {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F};
    case LibraryType::bf16:
      return {CUBLAS_COMPUTE_32F, CUDA_R_16BF, dense.f32_result ? CUDA_R_32F : CUDA_R_16BF};
    case LibraryType::f16:
      return {CUBLAS_COMPUTE_32F, CUDA_R_16F, dense.f32_result ? CUDA_R_32F : CUDA_R_16F};
  }
  CHECK(false, "a type that is not known here");
}

std::string dense_words(const LibraryDense& dense) {
  constexpr std::array kProducts = {"y", "dx", "dw"};
  constexpr std::array kTypes = {"f32", "tf32", "bf16", "f16"};
  return fmt::format("{} of a dense layer, {} rows, {} inputs, {} outputs, {}{}{}",
                     kProducts[static_cast<size_t>(dense.makes)], dense.rows, dense.inputs,
                     dense.outputs, kTypes[static_cast<size_t>(dense.type)],
                     dense.f32_result ? " to f32" : "", dense.bias ? ", with bias" : "");
}

/// cuBLASLt's matrices lie column by column. A matrix [r, c] that lies row by row is to it the
/// transposed one: c rows, r columns, and c elements from one column to the next. So each product
///     y [rows, outputs] = x w^T      dx [rows, inputs] = dy w      dw [outputs, inputs] = dy^T x
/// is asked for transposed, by which the factors change places:
///     y^T = w x^T                    dx^T = w^T dy^T               dw^T = x^T dy
/// In the memory of w, x and dy the library sees w^T, x^T and dy^T: it has to transpose the first
/// factor of y^T, none of dx^T, and the second one of dw^T. A bias has an element for each row of
/// y^T, as the library wants it.
CublasLtProduct cublaslt_product(const CublasLtFunctions& lt, const LibraryDense& dense) {
  CHECK(dense.rows > 0 && dense.inputs > 0 && dense.outputs > 0, "{}", dense_words(dense));
  CHECK(!dense.bias || dense.makes == LayerProduct::y, "{}", dense_words(dense));
  const CublasLtTypes types = cublaslt_types(dense);
  const bool makes_y = dense.makes == LayerProduct::y, makes_x = dense.makes == LayerProduct::x,
             makes_w = dense.makes == LayerProduct::w;
  const auto x = [&] {
    return matrix(lt, makes_x ? types.result : types.factors, dense.rows, dense.inputs);
  };
  const auto w = [&] {
    return matrix(lt, makes_w ? types.result : types.factors, dense.outputs, dense.inputs);
  };
  const auto y = [&] {
    return matrix(lt, makes_y ? types.result : types.factors, dense.rows, dense.outputs);
  };
  CublasLtProduct product{.operation = operation(lt, types.compute),
                          .a = makes_w ? x() : w(),
                          .b = makes_y ? x() : y(),
                          .result = makes_y   ? y()
                                    : makes_x ? x()
                                              : w(),
                          .first_is_a = makes_w};
  set_operation(lt, product, CUBLASLT_MATMUL_DESC_TRANSA, makes_y ? CUBLAS_OP_T : CUBLAS_OP_N);
  set_operation(lt, product, CUBLASLT_MATMUL_DESC_TRANSB, makes_w ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (dense.bias) {
    set_operation(lt, product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set_operation(lt, product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
    // Until there is one, the address says how it will be aligned.
    set_bias(lt, product, reinterpret_cast<const void*>(uintptr_t{kCublasLtAlignment}));
  }
  return product;
}

void set_bias(const CublasLtFunctions& lt, const CublasLtProduct& product, const void* bias) {
  set_operation(lt, product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

CublasLtOwned<cublasLtMatmulPreferenceOpaque_t> cublaslt_preference(const CublasLtFunctions& lt) {
  constexpr const char* kDoing = "describing a preference";
  cublasLtMatmulPreference_t made = nullptr;
  check_cublaslt(lt, lt.create_preference(&made), kDoing);
  CublasLtOwned<cublasLtMatmulPreferenceOpaque_t> preference(made, lt.destroy_preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check_cublaslt(lt, lt.set_preference(made, attribute, &value, sizeof(value)), kDoing);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kCublasLtReductions);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kCublasLtAlignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kCublasLtAlignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kCublasLtAlignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kCublasLtAlignment);
  return preference;
}

}  // namespace tutti::device
