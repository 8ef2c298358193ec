// The stand-in of cuBLASLt itself: what it would not let pass.

#include <gtest/gtest.h>

#include <array>

#include "tutti/base/expect_text.h"
#include "tutti/device/cuda/libraries/cublaslt_stand_in.h"

namespace tutti::device {
namespace {

/// A product as one would ask for it by hand, [rows, inputs] x [inputs, columns], columns first.
struct ByHand {
  cudaDataType_t a_type = CUDA_R_32F, b_type = CUDA_R_32F, c_type = CUDA_R_32F, d_type = CUDA_R_32F;
  uint64_t rows = 8, inputs = 4, columns = 16, b_rows = 4, c_rows = 8, d_columns = 16;
  int64_t a_stride = 8, b_stride = 4, c_stride = 8, d_stride = 8;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  int32_t a_is = CUBLAS_OP_N, pointers = CUBLASLT_POINTER_MODE_HOST, bias_type = CUDA_R_32F;
  uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  size_t epilogue_bytes = 4;
  struct alignas(256) Memory {
    char bytes[10000];
  } memory = {};
  char *a = begin(0), *b = begin(1), *c = begin(2), *d = begin(2), *bias = begin(3),
       *workspace = begin(4);
  size_t workspace_bytes = 1000;
  float alpha = 1, beta = 0;
  bool begins_algorithm = true, has_handle = true;
  const void* stream = nullptr;

  char* begin(size_t i) { return memory.bytes + i * 2048; }

  cublasStatus_t multiply() {
    cublasLtHandle_t handle = nullptr;
    cublasLtMatrixLayout_t of_a = nullptr, of_b = nullptr, of_c = nullptr, of_d = nullptr;
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value,
                         size_t bytes = sizeof(value)) {
      return cublasLtMatmulDescSetAttribute(operation, attribute, &value, bytes);
    };
    const auto set_algorithm = [&](cublasLtMatmulAlgoConfigAttributes_t attribute, auto value) {
      return begins_algorithm ? cublasLtMatmulAlgoConfigSetAttribute(&algorithm, attribute, &value,
                                                                     sizeof(value))
                              : CUBLAS_STATUS_SUCCESS;
    };
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    const auto then = [&](cublasStatus_t next) {
      if (status == CUBLAS_STATUS_SUCCESS) status = next;
    };
    then(cublasLtCreate(&handle));
    then(cublasLtMatrixLayoutCreate(&of_a, a_type, rows, inputs, a_stride));
    then(cublasLtMatrixLayoutCreate(&of_b, b_type, b_rows, columns, b_stride));
    then(cublasLtMatrixLayoutCreate(&of_c, c_type, c_rows, columns, c_stride));
    then(cublasLtMatrixLayoutCreate(&of_d, d_type, rows, d_columns, d_stride));
    then(cublasLtMatmulDescCreate(&operation, compute, scale));
    if (status == CUBLAS_STATUS_SUCCESS) {
      then(set(CUBLASLT_MATMUL_DESC_TRANSA, a_is));
      then(set(CUBLASLT_MATMUL_DESC_POINTER_MODE, pointers));
      then(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue, epilogue_bytes));
      then(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
      then(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type));
      if (begins_algorithm)
        then(cublasLtMatmulAlgoInit(handle, compute, scale, a_type, b_type, c_type, d_type, 66,
                                    &algorithm));
      then(set_algorithm(CUBLASLT_ALGO_CONFIG_TILE_ID, uint32_t{393}));
      then(set_algorithm(CUBLASLT_ALGO_CONFIG_STAGES_ID, uint32_t{36}));
      then(set_algorithm(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, uint16_t{3}));
      if (status == CUBLAS_STATUS_SUCCESS)
        then(cublasLtMatmul(has_handle ? handle : nullptr, operation, &alpha, a, of_a, b, of_b,
                            &beta, c, of_c, d, of_d, &algorithm, workspace, workspace_bytes,
                            static_cast<cudaStream_t>(const_cast<void*>(stream))));
    }
    const std::string refusal = tutti_cublaslt_stand_in()->refusal;
    if (operation) cublasLtMatmulDescDestroy(operation);
    for (cublasLtMatrixLayout_t one : {of_a, of_b, of_c, of_d})
      if (one) cublasLtMatrixLayoutDestroy(one);
    cublasLtDestroy(handle);
    tutti_cublaslt_stand_in()->refusal = refusal;
    return status;
  }
};

struct Fault {
  const char* refusal;
  void (*plant)(ByHand&);
  cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE;
};

TEST(CublasLtStandIn, RefusesFaults) {
  constexpr std::array kFaults = {
      Fault{"columns that overlap", [](ByHand& by) { by.a_stride = 7; }},
      Fault{"columns that overlap", [](ByHand& by) { by.b_stride = 3; }},
      Fault{"columns that overlap", [](ByHand& by) { by.d_stride = 4; }},
      Fault{"an algorithm that cannot do it", [](ByHand& by) { by.d_stride = 9; },
            CUBLAS_STATUS_NOT_SUPPORTED},
      Fault{"factors that do not fit", [](ByHand& by) { by.a_is = CUBLAS_OP_T; }},
      Fault{"factors that do not fit", [](ByHand& by) { by.b_rows = 3; }},
      Fault{"a result that does not fit", [](ByHand& by) { by.d_columns = 15; }},
      Fault{"a C that does not fit", [](ByHand& by) { by.c_rows = 7; }},
      Fault{"an empty matrix", [](ByHand& by) { by.columns = 0; }},
      Fault{"factors of two types", [](ByHand& by) { by.b_type = CUDA_R_16BF; }},
      Fault{"C and D of two types", [](ByHand& by) { by.c_type = CUDA_R_16BF; }},
      Fault{"a result of neither the factors' type nor f32",
            [](ByHand& by) { by.c_type = by.d_type = CUDA_R_16F; }},
      Fault{"tf32 of factors that are not f32",
            [](ByHand& by) {
              by.a_type = by.b_type = CUDA_R_16F;
              by.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
            }},
      Fault{"a bias of another type than the result",
            [](ByHand& by) { by.a_type = by.b_type = by.c_type = by.d_type = CUDA_R_16BF; }},
      Fault{"a type of elements that Tutti has not", [](ByHand& by) { by.a_type = CUDA_R_64F; }},
      Fault{"a type of sums that Tutti has not",
            [](ByHand& by) { by.compute = CUBLAS_COMPUTE_16F; }},
      Fault{"alpha and beta of another type", [](ByHand& by) { by.scale = CUDA_R_16F; }},
      Fault{"alpha is not on the host",
            [](ByHand& by) { by.pointers = CUBLASLT_POINTER_MODE_DEVICE; }},
      Fault{"neither transposed nor as it is", [](ByHand& by) { by.a_is = 5; }},
      Fault{"an epilogue that Tutti has not",
            [](ByHand& by) { by.epilogue = CUBLASLT_EPILOGUE_RELU; }},
      Fault{"an attribute of another size", [](ByHand& by) { by.epilogue_bytes = 8; }},
      Fault{"no bias", [](ByHand& by) { by.bias = nullptr; }},
      Fault{"an algorithm that was not initialised",
            [](ByHand& by) { by.begins_algorithm = false; }},
      Fault{"no handle", [](ByHand& by) { by.has_handle = false; }, CUBLAS_STATUS_NOT_INITIALIZED},
      Fault{"A is not in memory", [](ByHand& by) { by.a = nullptr; }},
      Fault{"A is not in memory", [](ByHand& by) { by.a += 8; }},
      Fault{"B is not in memory", [](ByHand& by) { by.b -= 4096; }},
      Fault{"D is not in memory", [](ByHand& by) { by.c = by.d = by.begin(4) + 1408; }},
      Fault{"a C that is not D", [](ByHand& by) { by.c += 16; }},
      Fault{"the bias is not in memory", [](ByHand& by) { by.bias += 4; }},
      Fault{"the workspace is not in memory", [](ByHand& by) { by.workspace += 16; }},
      Fault{"too small a workspace", [](ByHand& by) { by.workspace_bytes = 999; }},
      Fault{"an alpha that is not 1", [](ByHand& by) { by.alpha = 2; }},
      Fault{"a beta that is not 0", [](ByHand& by) { by.beta = 1; }},
      Fault{"another stream", [](ByHand& by) { by.stream = nullptr; }},
  };
  tutti::device::CublasLtStandIn& told = *tutti_cublaslt_stand_in();
  told = {};
  const auto multiply = [&](void (*plant)(ByHand&)) {
    ByHand by;
    told.memory = {std::as_bytes(std::span(by.memory.bytes))};
    told.stream = by.stream = &by;
    told.refusal = "";
    plant(by);
    return by.multiply();
  };
  EXPECT_EQ(multiply([](ByHand&) {}), CUBLAS_STATUS_SUCCESS) << told.refusal;
  for (const Fault& fault : kFaults) {
    EXPECT_EQ(multiply(fault.plant), fault.status) << fault.refusal;
    EXPECT_TRUE(has_text(told.refusal, fault.refusal));
  }
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(told.live, 0);
}

}  // namespace
}  // namespace tutti::device
