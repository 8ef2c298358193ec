#include "tutti/train/nonfinite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tutti {
namespace {

TEST(NonfiniteGradient, IsNamedByParameterAndElement) {
  Variables variables;
  variables.parameters = {
      {.name = "fc.weight", .desc = {DType::f32, {10, 500}, {}}, .offset = 0, .init = {}},
      {.name = "conv.weight", .desc = {DType::f32, {7, 3}, {}}, .offset = 20032, .init = {}}};
  const Bucket whole{.name = "bucket 0", .begin = 0, .bytes = 20160, .members = {0, 1}};
  const Bucket second{.name = "bucket 1", .begin = 20032, .bytes = 128, .members = {1}};
  std::vector<float> arena(20160 / 4, 0.0f);
  SharedWork work;
  for (size_t i = 0; i < arena.size(); ++i)
    arena[i] =
        i % 2 == 0 ? std::numeric_limits<float>::max() : -std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(nonfinite_gradient(variables, whole, arena.data(), work), "");

  for (const float bad : {std::nanf(""), -std::nanf("1"), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    arena[5008 + 20] = bad;
    EXPECT_EQ(nonfinite_gradient(variables, whole, arena.data(), work),
              "the gradient of 'conv.weight' is not finite (element 20 of 21)");
    EXPECT_EQ(nonfinite_gradient(variables, second, arena.data(), work),
              "the gradient of 'conv.weight' is not finite (element 20 of 21)");
    arena[4999] = bad;
    EXPECT_EQ(nonfinite_gradient(variables, whole, arena.data(), work),
              "the gradient of 'fc.weight' is not finite (element 4999 of 5000)");
    EXPECT_EQ(nonfinite_gradient(variables, second, arena.data(), work),
              "the gradient of 'conv.weight' is not finite (element 20 of 21)");
    arena[4999] = arena[5008 + 20] = 0;
  }
  arena[5001] = std::nanf("");
  EXPECT_EQ(nonfinite_gradient(variables, whole, arena.data(), work),
            "the gradient in bucket 0 is not finite between its parameters");
}

}  // namespace
}  // namespace tutti
