#include "tutti/models/summary.h"

#include <gtest/gtest.h>

#include "tutti/base/expect_text.h"

namespace tutti::models {

TEST(ModelSummary, CountsByHand) {
  const ModelSummary s = summarise({.name = "lenet", .batch = 7});
  ASSERT_EQ(s.layers.front().name, "conv1");
  EXPECT_EQ(s.layers.front().output, (Shape{6, 28, 28}));
  EXPECT_EQ(s.layers.front().parameters, 156);
  EXPECT_EQ(s.layers.front().flop, 2.0 * 28 * 28 * 6 * 25);
  EXPECT_EQ(s.parameters, 61'706);
  EXPECT_EQ(s.statistics, 0);
  const double dense = 2.0 * (400 * 120 + 120 * 84 + 84 * 10);
  EXPECT_EQ(s.forward_flop, 2.0 * 28 * 28 * 6 * 25 + 2.0 * 10 * 10 * 16 * 150 + dense);
  // Backward: the gradients of input and weights each cost as much as the forward; the first layer
  // needs no gradient of its input.
  EXPECT_EQ(s.training_flop, 3 * s.forward_flop - s.layers.front().flop);
}

TEST(ModelSummary, ResNet44CostsWhatIsPublished) {
  const ModelSummary s = summarise({.name = "resnet44"});
  EXPECT_EQ(s.parameters, 658'586);
  EXPECT_EQ(s.statistics, 2 * (15 * 16 + 14 * 32 + 14 * 64));
  EXPECT_NEAR(s.forward_flop, 2 * 97.5e6, 2e6);  // 97.5 million multiply-adds
  int64_t parameters = 0;
  for (const LayerSummary& layer : s.layers) parameters += layer.parameters;
  EXPECT_EQ(parameters, s.parameters);
}

TEST(ModelSummary, PrintsATable) {
  const std::string text = to_text(summarise({.name = "resnet20"}));
  EXPECT_TRUE(has_text(text, "layer3.2.conv2"));
  EXPECT_TRUE(has_text(text, "64x8x8"));
  EXPECT_TRUE(has_text(text, "parameters 269722, running averages"));
  EXPECT_EQ(with_unit(0), "0");
  EXPECT_EQ(with_unit(999.7), "1.00 k");
  EXPECT_EQ(with_unit(82'700'000), "82.7 M");
}

}  // namespace tutti::models
