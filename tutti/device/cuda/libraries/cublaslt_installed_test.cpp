// cuBLASLt as it is installed, of which most needs a device. The CTest sets TUTTI_CUBLASLT where it
// has found the library.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/device/cuda/libraries/cublaslt.h"
#include "tutti/device/cuda/libraries/cublaslt_product.h"
#include "tutti/device/cuda/libraries/cublaslt_stand_in.h"

namespace tutti::device {
namespace {

class CublasLtAsInstalled : public testing::Test {
 protected:
  void SetUp() override {
    if (!place_) GTEST_SKIP() << "TUTTI_CUBLASLT is not set";
  }
  const char* place_ = std::getenv("TUTTI_CUBLASLT");
};

TEST_F(CublasLtAsInstalled, OpensOrFindsNoDevice) {
  CublasLt opened(place_);
  const LibraryDense dense = {.type = LibraryType::bf16, .rows = 64, .inputs = 128, .outputs = 256};
  const std::vector<LibraryWay> ways = opened.ways(dense);
  ASSERT_FALSE(ways.empty());
  if (opened.version().starts_with("no cuBLASLt: ")) {
    EXPECT_TRUE(has_text(opened.version(), "opening it: CUBLAS_STATUS_NOT_INITIALIZED"));
    EXPECT_TRUE(has_text(ways[0].refusal, "it finds no device"));
    EXPECT_THROW(opened.call(dense, "cublaslt:0"), DeviceError);
    return;
  }
  for (const LibraryWay& way : ways) {
    EXPECT_EQ(way.refusal, "") << way.name;
    EXPECT_NE(opened.call(dense, way.name), nullptr);
  }
}

/// Descriptors can be made without a device, and the library looks at the sizes of attributes.
TEST_F(CublasLtAsInstalled, TakesDescriptorsAndSizesOfAttributes) {
  const CublasLtFunctions lt = cublaslt_functions(place_);
  ASSERT_EQ(lt.problem, "");
  for (const LayerProduct makes : {LayerProduct::y, LayerProduct::x, LayerProduct::w})
    for (const LibraryType type :
         {LibraryType::f32, LibraryType::tf32, LibraryType::bf16, LibraryType::f16})
      EXPECT_NO_THROW(cublaslt_product(lt, {.makes = makes,
                                            .type = type,
                                            .f32_result = true,
                                            .bias = makes == LayerProduct::y,
                                            .rows = 3,
                                            .inputs = 5,
                                            .outputs = 7}));
  EXPECT_NO_THROW(cublaslt_preference(lt));

  // The stand-in has the same sizes of an algorithm's settings.
  const CublasLtFunctions stand_in = cublaslt_functions(TUTTI_CUBLASLT_STAND_IN);
  *tutti_cublaslt_stand_in() = {};
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulAlgo_t algorithm = {}, theirs = {};
  ASSERT_EQ(stand_in.create(&handle), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(stand_in.begin_algorithm(handle, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
                                     CUDA_R_32F, CUDA_R_32F, 6, &algorithm),
            CUBLAS_STATUS_SUCCESS);
  for (int i = CUBLASLT_ALGO_CONFIG_ID; i <= CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID; ++i)
    for (const size_t bytes : {1, 2, 4, 8}) {
      const auto attribute = static_cast<cublasLtMatmulAlgoConfigAttributes_t>(i);
      uint64_t value = 0;
      size_t written = 0;
      EXPECT_EQ(stand_in.get_algorithm(&algorithm, attribute, &value, bytes, &written),
                lt.get_algorithm(&theirs, attribute, &value, bytes, &written))
          << i << ", " << bytes << " bytes";
    }
  EXPECT_EQ(stand_in.destroy(handle), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace tutti::device
