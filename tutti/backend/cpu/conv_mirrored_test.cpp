#include "tutti/backend/cpu/conv_mirrored.h"

#include <gtest/gtest.h>

#include <optional>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/cpu/simd_vector.h"
#include "tutti/ops/conv.h"

namespace tutti {
namespace {

// That they compute what they should, CpuConv.MatchesTheDefinition says of all candidates.
TEST(CpuConvMirrored, GradientsOfDataGoForwardWhereTheStrideIsOne) {
  const TensorDesc dy{DType::f32, {2, 32, 6, 8}, Layout::channels_last(4)},
      w{DType::f32, {32, 48, 3, 3}, {}};
  for (const int64_t stride : {1, 2}) {
    const Shape shape{2, 48, 6 * stride, 8 * stride};
    const ConvAttributes attributes{
        .stride = {stride, stride, 1}, .pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}};
    const ConvBackwardData data(attributes, shape);
    const TensorDesc dx{DType::f32, shape, Layout::channels_last(4)};
    const auto offered = [&](const TensorDesc& weights, bool free) {
      std::optional<KernelCandidate> found;
      for (const auto& c :
           CpuBackend().candidates({&data, {dy, weights}, {dx}, {false, free}, {false}}))
        if (c.name.starts_with("mirrored") && c.refusal.empty()) found = c;
      return found;
    };
    const auto chosen = offered(w, true);
    ASSERT_EQ(chosen.has_value(), stride == 1 && TUTTI_AVX512) << stride;
    if (!chosen) continue;
    EXPECT_TRUE(chosen->in[1].layout.mirrored);
    EXPECT_TRUE(offered(chosen->in[1], false)) << "not for weights that are packed already";
  }
}

}  // namespace
}  // namespace tutti
