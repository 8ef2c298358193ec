#include "tutti/mlsl/residuals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tutti::mlsl {
namespace {

constexpr size_t kFloats = 10;

// Only the addresses of these floats are used.
const std::vector<float>& buffers() {
  static const std::vector<float> all(1000);
  return all;
}
const float* buffer(size_t i) { return buffers().data() + i; }

TEST(Residuals, BuffersInTurnsHaveTheirOwn) {
  Residuals residuals(kFloats);
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < Residuals::kMostBuffers; ++i) {
      const std::span<float> lost = residuals.of(buffer(i));
      ASSERT_EQ(lost.size(), kFloats);
      EXPECT_EQ(lost[3], static_cast<float>(round) * static_cast<float>(i + 1));
      lost[3] += static_cast<float>(i + 1);
    }
}

TEST(Residuals, AFreshBufferEveryStepIsBoundedAndLosesNothing) {
  Residuals residuals(kFloats);
  for (size_t step = 0; step < buffers().size(); ++step) {
    residuals.of(buffer(step))[0] += 1;
    EXPECT_LE(residuals.bytes(), Residuals::kMostBuffers * kFloats * sizeof(float));
  }
  float kept = 0;
  for (size_t i = 0; i < Residuals::kMostBuffers; ++i)
    kept += residuals.of(buffer(buffers().size() - 1 - i))[0];
  EXPECT_EQ(kept, static_cast<float>(buffers().size()));
}

TEST(Residuals, TheBufferThatWasAwayForLongestGivesItsOwnUp) {
  Residuals residuals(kFloats);
  for (size_t i = 0; i < Residuals::kMostBuffers; ++i)
    residuals.of(buffer(i))[0] = static_cast<float>(i + 1);
  residuals.of(buffer(0));
  EXPECT_EQ(residuals.of(buffer(7))[0], 2);
  EXPECT_EQ(residuals.of(buffer(0))[0], 1);
}

}  // namespace
}  // namespace tutti::mlsl
