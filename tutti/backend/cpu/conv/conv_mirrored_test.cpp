#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/cpu/simd/simd_vector.h"
#include "tutti/ops/conv.h"

namespace tutti::backend {
namespace {

std::optional<KernelCandidate> offered(const KernelRequest& request, std::string_view name) {
  std::optional<KernelCandidate> found;
  for (const auto& c : CpuBackend().candidates(request))
    if (c.name.find(name) != std::string::npos && c.refusal.empty()) found = c;
  return found;
}

// CpuConv.MatchesTheDefinition tests the results of all candidates.
TEST(CpuConvMirrored, GradientsOfDataGoForwardWhereTheStrideIsOne) {
  const TensorDesc dy{DType::f32, {2, 32, 6, 8}, Layout::channels_last(4)},
      w{DType::f32, {32, 48, 3, 3}, {}};
  for (const int64_t stride : {1, 2}) {
    const Shape shape{2, 48, 6 * stride, 8 * stride};
    const ops::ConvAttributes attributes{
        .stride = {stride, stride, 1}, .pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}};
    const ops::ConvBackwardData data(attributes, shape);
    const TensorDesc dx{DType::f32, shape, Layout::channels_last(4)};
    const auto mirrored = [&](const TensorDesc& weights, bool free) {
      return offered({&data, {dy, weights}, {dx}, {false, free}, {false}}, "mirrored");
    };
    const auto chosen = mirrored(w, true);
    if (stride != 1) {
      EXPECT_FALSE(chosen);
      continue;
    }
    // oneDNN checks the processor, whatever this was built for.
    const ops::Conv forward(attributes, false);
    const TensorDesc turned{DType::f32, {48, 32, 3, 3}, {}};
    const bool brgemm =
        offered({&forward, {dy, turned}, {dx}, {false, true}, {false}}, "brg").has_value();
    EXPECT_TRUE(brgemm || !TUTTI_AVX512);
    ASSERT_EQ(chosen.has_value(), brgemm);
    if (!chosen) continue;
    EXPECT_TRUE(chosen->in[1].layout.mirrored);
    EXPECT_TRUE(mirrored(chosen->in[1], false)) << "not for weights that are packed already";
  }
}

}  // namespace
}  // namespace tutti::backend
