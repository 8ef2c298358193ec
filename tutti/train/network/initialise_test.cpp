#include "tutti/train/network/initialise.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::train {
namespace {

using InitKind = graph::Init::Kind;

std::vector<float> initial(const InitialTensor& tensor, uint64_t seed = 1) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.elements()), NAN);
  initialise(tensor, seed, values);
  return values;
}

double variance(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
  }
  const auto n = static_cast<double>(values.size());
  return squares / n - sum / n * (sum / n);
}

}  // namespace

TEST(Initialise, HasTheVarianceOfItsFan) {
  const Shape w{64, 32, 3, 3};
  EXPECT_NEAR(variance(initial({"a.weight", w, {InitKind::kaiming_normal_fan_out, 0}})) * 64 * 9, 2,
              0.06);
  EXPECT_NEAR(variance(initial({"a.weight", w, {InitKind::kaiming_normal_fan_in, 0}})) * 32 * 9, 2,
              0.06);
  const std::vector<float> uniform =
      initial({"fc.weight", {100, 400}, {InitKind::uniform_fan_in, 0}});
  EXPECT_NEAR(variance(uniform) * 400, 1.0 / 3, 0.01);
  EXPECT_LE(std::ranges::max(uniform), 0.05f);
  EXPECT_GE(std::ranges::min(uniform), -0.05f);
  EXPECT_LE(std::ranges::max(initial({"fc.bias", {1000}, {InitKind::uniform_fan_in, 10000}})),
            0.01f);
  // Keras counts the receptive field in both fans: (32 + 64) * 9.
  const std::vector<float> glorot = initial({"a.weight", w, {InitKind::glorot_uniform, 0}});
  const float limit = std::sqrt(6.0f / ((32 + 64) * 9));
  EXPECT_NEAR(variance(glorot), limit * limit / 3, 0.02 * limit * limit / 3);
  EXPECT_LE(std::ranges::max(glorot), limit);
  EXPECT_GE(std::ranges::max(glorot), 0.999f * limit);
  EXPECT_GE(std::ranges::min(glorot), -limit);
  EXPECT_THROW(initial({"a.bias", {8}, {InitKind::glorot_uniform, 0}}), ConfigError);
  const std::vector<float> kaiming =
      initial({"a.weight", w, {InitKind::kaiming_uniform_fan_in, 0}});
  EXPECT_NEAR(variance(kaiming) * 32 * 9, 2, 0.06);
  EXPECT_LE(std::ranges::max(kaiming), std::sqrt(6.0f / (32 * 9)));
  EXPECT_NEAR(variance(initial({"a.weight", w, {InitKind::kaiming_uniform_fan_out, 0}})) * 64 * 9,
              2, 0.06);
  EXPECT_NEAR(variance(initial({"a.weight", w, {InitKind::glorot_normal, 0}})) * (32 + 64) * 9, 2,
              0.06);
  EXPECT_EQ(initial({"bn.weight", {3}, {InitKind::ones, 0}}), std::vector<float>(3, 1.0f));
  EXPECT_EQ(initial({"bn.bias", {3}, {InitKind::zeros, 0}}), std::vector<float>(3, 0.0f));
}

TEST(Initialise, TakesAGivenNumber) {
  const Shape w{64, 32, 3, 3};
  EXPECT_EQ(initial({"fc.bias", {3}, {InitKind::constant, 0, 0.1}}), std::vector<float>(3, 0.1f));
  EXPECT_NEAR(variance(initial({"a.weight", w, {InitKind::normal, 0, 0.02}})), 0.0004, 1.2e-5);
  const std::vector<float> uniform = initial({"a.weight", w, {InitKind::uniform, 0, 0.3}});
  EXPECT_NEAR(variance(uniform), 0.03, 0.001);
  EXPECT_LE(std::ranges::max(uniform), 0.3f);
  const std::vector<float> cut = initial({"a.weight", w, {InitKind::truncated_normal, 0, 0.02}});
  EXPECT_LE(std::ranges::max(cut), 0.04f);
  EXPECT_GE(std::ranges::max(cut), 0.039f);
  EXPECT_GE(std::ranges::min(cut), -0.04f);
  EXPECT_NEAR(variance(cut) / 0.0004, 0.774, 0.03);  // a normal distribution cut at two deviations
}

/// There are more values than are drawn at once: later draws replace rejected ones.
TEST(Initialise, CutNumbersAreThoseDrawnOneAfterTheOther) {
  const std::vector<float> values =
      initial({"a.weight", {(1 << 22) + 3}, {InitKind::truncated_normal, 0, 0.02}});
  const std::string_view name = "a.weight";
  Rng rng(1, Purpose::weights, XXH64(name.data(), name.size(), 0));
  int64_t wrong = 0;
  for (const float value : values) {
    float drawn = rng.normal();
    while (std::abs(drawn) > 2) drawn = rng.normal();
    if (value != drawn * 0.02f) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
}

/// The values do not depend on the owner or on the number of threads: 1.5 million values are 23
/// blocks.
TEST(Initialise, RowsOfATableAreThoseOfTheWhole) {
  const graph::Init init{.kind = InitKind::uniform, .value = 0.5};
  const std::vector<float> whole = initial({"emb_l.0.weight", {50000, 30}, init});
  for (const int64_t first : {0, 1, 777, 20000}) {
    const Shape rows{first == 777 ? 11 : 30000, 30};
    std::vector<float> some(static_cast<size_t>(rows.elements()));
    initialise_rows({"emb_l.0.weight", rows, init}, 1, first, some);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), whole.begin() + first * 30)) << first;
  }
}

TEST(Initialise, DependsOnSeedAndNameAlone) {
  const graph::Init init{InitKind::kaiming_normal_fan_in, 0};
  const auto first = initial({"conv1.weight", {8, 4}, init});
  EXPECT_EQ(first, initial({"conv1.weight", {8, 4}, init}));
  EXPECT_NE(first, initial({"conv2.weight", {8, 4}, init}));
  EXPECT_NE(first, initial({"conv1.weight", {8, 4}, init}, 2));
  EXPECT_THROW(initial({"conv1.bias", {8}, init}), ConfigError);
}

}  // namespace tutti::train
