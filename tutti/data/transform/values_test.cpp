#include "tutti/data/transform/values.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tutti/data/transform/steps.h"

namespace tutti::data {
namespace {

ValueFunction function_of(const char* steps, int64_t channels) {
  return {{.name = "y", .element = ElementType::f32}, channels, parse_steps(steps).values};
}

TEST(ValueFunction, GoesBackThroughItsSteps) {
  std::vector<float> x(2 * 5);  // two channels of five positions
  std::iota(x.begin(), x.end(), 1.0f);
  for (const char* steps : {"y: divide 3", "y: multiply 0.25", "y: add -4", "y: log1p",
                            "y: normalise mean 2 6 std 3 5", "y: min-max min 0 5 max 5 15",
                            "y: add 1, multiply 2, log1p, normalise mean 1 2 std 2 4, clip -30 30, "
                            "min-max min -1 max 1"}) {
    const ValueFunction f = function_of(steps, 2);
    std::vector<float> y = x;
    f.apply(std::span(y).first(5), 0, false);
    f.apply(std::span(y).last(5), 1, false);
    EXPECT_TRUE(f.has_inverse()) << steps;
    EXPECT_NE(y, x) << steps;
    f.invert(y);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], x[i], 2e-5) << steps << ", " << i;
  }
}

TEST(ValueFunction, SaysWhatHasNoWayBack) {
  const ValueFunction clipped = function_of("y: log1p, clip 0 2, divide 4", 1);
  std::vector<float> y = {1};
  clipped.apply(y, 0, false);
  clipped.invert(y);
  EXPECT_FLOAT_EQ(y[0], 1);
  EXPECT_EQ(clipped.undone(), "log1p, divide 4");
  EXPECT_EQ(clipped.kept(), "clip 0 2");
  const ValueFunction gone = function_of("y: add 3, multiply 0", 1);
  y = {7};
  gone.invert(y);
  EXPECT_EQ(y[0], 7);
  EXPECT_FALSE(gone.has_inverse());
  EXPECT_EQ(gone.undone(), "");
  EXPECT_EQ(gone.kept(), "add 3, multiply 0");
  EXPECT_FALSE(function_of("y:", 1).has_inverse());
}

// Julian days: f32 resolves quarters of a day, the data have seconds.
TEST(ValueFunction, KeepsTheDigitsOfLargeNumbers) {
  const ValueFunction f = function_of("y: add -2460000, divide 2", 1);
  std::vector<double> days = {2460000.51, 2460001.27};
  f.apply(days, 0, false);
  EXPECT_NEAR(days[0], 0.255, 1e-8);
  EXPECT_NEAR(days[1], 0.635, 1e-8);
  std::vector<float> y = {0.255f, 0.635f}, shifted = y;
  f.invert(y);
  EXPECT_NE(y[1] - y[0], 0.76f);
  f.invert(shifted, Origin::learned_zero);
  EXPECT_NEAR(shifted[1] - shifted[0], 0.76, 1e-6);
}

}  // namespace
}  // namespace tutti::data
