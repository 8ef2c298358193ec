#include "tutti/train/infer/token_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

/// Counts how often each token is chosen for `draws` evenly spread numbers.
std::map<int32_t, int> chosen(const std::vector<float>& logits, const TokenChoice& choice,
                              int draws = 10'000) {
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[choose_token(logits, choice, (i + 0.5) / draws)];
  return counts;
}

const std::vector<float> kLogits = {std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)};

TEST(TokenChoice, DrawsFromTheSoftmax) {
  EXPECT_EQ(chosen(kLogits, {}),
            (std::map<int32_t, int>{{0, 1000}, {1, 4000}, {2, 2000}, {3, 3000}}));
  // The weights are squared probabilities.
  const auto cold = chosen(kLogits, {.temperature = 0.5}, 30'000);
  EXPECT_NEAR(cold.at(0), 1000, 1);
  EXPECT_NEAR(cold.at(1), 16000, 1);
  EXPECT_EQ(chosen(kLogits, {.temperature = 0}), (std::map<int32_t, int>{{1, 10'000}}));
}

TEST(TokenChoice, LeavesOutWhatIsUnlikely) {
  const auto two = chosen(kLogits, {.top_k = 2}, 7000);
  EXPECT_EQ(two, (std::map<int32_t, int>{{1, 4000}, {3, 3000}}));
  // 0.4 and 0.3 sum to 0.7: a share of 0.71 needs the third.
  EXPECT_EQ(chosen(kLogits, {.top_p = 0.69}, 7000), two);
  EXPECT_EQ(chosen(kLogits, {.top_p = 0.71}, 9000).size(), 3u);
  EXPECT_EQ(chosen(kLogits, {.top_p = 0.0}).size(), 1u);
  EXPECT_EQ(chosen(kLogits, {.top_k = 9}).size(), 4u);
  EXPECT_EQ(chosen(kLogits, {.top_k = 3, .top_p = 0.5}, 7000), two);  // 4 of 9, then 7 of 9
}

TEST(TokenChoice, OfEqualOnesTheFirstAndNothingThatIsNoNumber) {
  const std::vector<float> none(3, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THROW((void)choose_token(none, {}, 0.5), NumericError);
  const std::vector<float> equal = {std::numeric_limits<float>::quiet_NaN(), 2, 2, -1e30f};
  EXPECT_EQ(choose_token(equal, {.temperature = 0}, 0.9), 1);
  EXPECT_EQ(chosen(equal, {}), (std::map<int32_t, int>{{1, 5000}, {2, 5000}}));
  EXPECT_EQ(choose_token(equal, {}, std::nextafter(1.0, 0.0)), 2);
}

}  // namespace
}  // namespace tutti::train
