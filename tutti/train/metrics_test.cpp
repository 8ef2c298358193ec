#include "tutti/train/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"

namespace tutti {

TEST(ClassifierQuality, ByHand) {
  const std::array<float, 9> logits = {1, 2, 3, 1, 1, 0, 1000, 0, -1000};
  const std::array<int32_t, 3> labels = {2, 1, 1};
  const ClassifierQuality q = classifier_quality(logits, labels, 3);
  EXPECT_EQ(q.samples, 3);
  EXPECT_EQ(q.correct, 1);  // of the equal logits of sample 1 the first counts
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 3;
  const double second = std::log(2 * std::exp(1.0) + 1) - 1;
  EXPECT_NEAR(q.cross_entropy, first + second + 1000, 1e-6);
  EXPECT_DOUBLE_EQ(q.accuracy(), 1.0 / 3);
}

TEST(ClassifierQuality, NaNIsNeitherCorrectNorHidden) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const ClassifierQuality q =
      classifier_quality(std::array<float, 2>{1, nan}, std::array<int32_t, 1>{0}, 2);
  EXPECT_EQ(q.correct, 0);
  EXPECT_TRUE(std::isnan(q.cross_entropy));
}

TEST(ClassifierQuality, DoesNotDependOnTheSplit) {
  Rng rng(1, Purpose::test, 0);
  std::vector<float> logits(1000 * 10);
  std::vector<int32_t> labels(1000);
  for (float& v : logits) v = 5 * rng.normal();
  for (int32_t& l : labels) l = static_cast<int32_t>(rng.below(10));
  const ClassifierQuality whole = classifier_quality(logits, labels, 10);
  ClassifierQuality parts;
  for (size_t first : {size_t{900}, size_t{300}, size_t{0}}) {
    const size_t last = first == 0 ? 300 : first == 300 ? 900 : 1000;
    parts += classifier_quality(std::span(logits).subspan(first * 10),
                                std::span(labels).subspan(first, last - first), 10);
  }
  EXPECT_EQ(parts.samples, whole.samples);
  EXPECT_EQ(parts.correct, whole.correct);
  EXPECT_EQ(parts.cross_entropy, whole.cross_entropy);  // to the bit
}

TEST(ClassifierQuality, NamesALabelThatDoesNotFit) {
  EXPECT_THROW(classifier_quality(std::array<float, 2>{}, std::array<int32_t, 1>{2}, 2),
               ConfigError);
}

}  // namespace tutti
