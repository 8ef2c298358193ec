#include "tutti/comm/element.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti::comm {
namespace {

// Large sums are written around the cache; beginnings and ends that fit no vector are not.
TEST(Combine, LargeSumsAreThoseOfSmallOnes) {
  constexpr size_t kCount = (size_t{2} << 20) + 1000;
  std::vector<float> a(kCount + 16), b(kCount + 16), to(kCount + 32);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(i % 1000) * 0.37f, b[i] = static_cast<float>(i % 777) * -1.9f;
  const auto run = [](float* at) -> comm::Run {
    return comm::Run{reinterpret_cast<std::byte*>(at), Element::f32};
  };
  for (const size_t shift : {0u, 1u, 7u, 15u}) {
    std::fill(to.begin(), to.end(), 5.f);
    const size_t count = kCount + shift - 3;
    combine(ReduceOp::sum, run(to.data() + shift), run(a.data() + 1), run(b.data() + shift), count);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += to[shift + i] != a[1 + i] + b[shift + i];
    EXPECT_EQ(wrong, 0u) << shift;
    EXPECT_EQ(to[shift + count], 5.f);
    if (shift > 0) {
      EXPECT_EQ(to[shift - 1], 5.f);
    }
  }
}

}  // namespace
}  // namespace tutti::comm
