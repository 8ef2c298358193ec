#include "tutti/data/pipeline/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace tutti::data {
namespace {

std::vector<int64_t> order_of(uint64_t seed, int64_t stream, int64_t size) {
  const Permutation permutation(seed, stream, size);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size; ++i) order.push_back(permutation(i));
  return order;
}

/// Chi-square of counts whose expected value is `expected` each.
double chi_square(const std::vector<int64_t>& counts, double expected) {
  double sum = 0;
  for (const int64_t count : counts)
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected);
  return sum / expected;
}

/// Returns the limit that chi-square exceeds once in a million (Wilson and Hilferty's
/// approximation).
double limit(double degrees) {
  const double part = 2 / (9 * degrees);
  return degrees * std::pow(1 - part + 4.75 * std::sqrt(part), 3);
}

TEST(Permutation, HasEveryNumberOnce) {
  for (const int64_t size : {0, 1, 2, 3, 4, 5, 7, 64, 1000, 1021, 65536, 100003}) {
    std::vector<int64_t> order = order_of(3, 9, size);
    std::ranges::sort(order);
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i) << size;
  }
}

TEST(Permutation, ARunIsItsParts) {
  const Permutation permutation(3, 9, 1000);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{16}, size_t{37}}) {
    std::vector<int64_t> run(count);
    permutation.run(1000 - static_cast<int64_t>(count), run);
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(run[i], permutation(1000 - static_cast<int64_t>(count - i)));
  }
}

TEST(Permutation, DependsOnSeedAndStreamAlone) {
  EXPECT_EQ(order_of(1, 0, 1000), order_of(1, 0, 1000));
  EXPECT_NE(order_of(1, 0, 1000), order_of(1, 1, 1000));
  EXPECT_NE(order_of(1, 0, 1000), order_of(2, 0, 1000));
}

/// A checkpoint continues with its order, so this text must change with the order.
TEST(Permutation, IsTheOneOfItsName) {
  EXPECT_EQ(kOrderName, "swap-or-not, 48 rounds");
  const Permutation permutation(1, 2, 1000003);
  EXPECT_EQ((std::array{permutation(0), permutation(1), permutation(2), permutation(1000002)}),
            (std::array<int64_t, 4>{635867, 39907, 695586, 830799}));
}

TEST(Permutation, AllOrdersOfAFewAreEquallyLikely) {
  for (const int64_t size : {3, 4, 5}) {
    const int64_t orders = size == 3 ? 6 : size == 4 ? 24 : 120, each = 500;
    std::map<std::vector<int64_t>, int64_t> seen;
    for (int64_t seed = 0; seed < orders * each; ++seed)
      ++seen[order_of(static_cast<uint64_t>(seed), 0, size)];
    std::vector<int64_t> counts;
    for (const auto& [order, count] : seen) counts.push_back(count);
    ASSERT_EQ(std::ssize(counts), orders);
    EXPECT_LT(chi_square(counts, static_cast<double>(each)),
              limit(static_cast<double>(orders - 1)));
  }
}

/// Samples of each tenth of the set go to each tenth equally often, summed over epochs.
TEST(Permutation, PositionsAreUniform) {
  const int64_t size = 1000, epochs = 200;
  std::vector<int64_t> cells(100), last(10);
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const Permutation permutation(11, epoch, size);
    for (int64_t i = 0; i < size; ++i)
      ++cells[static_cast<size_t>(i / 100 * 10 + permutation(i) / 100)];
    ++last[static_cast<size_t>(permutation(size - 1) / 100)];
  }
  // Rows and columns have fixed sums, so there are 81 degrees; and the number of each pair varies
  // less than with independent draws, by a factor (1 - 1/10)^2, which makes the limit a wide one.
  EXPECT_LT(chi_square(cells, 2000), limit(81));
  EXPECT_GT(chi_square(cells, 2000), 30);  // an order that is too even is not random either
  EXPECT_LT(chi_square(last, 20), limit(9));
}

/// The distance between the places of neighbours is uniform, so no pairs or cycles of samples stay
/// together from epoch to epoch.
TEST(Permutation, NeighboursPart) {
  const int64_t size = 1009, epochs = 200;
  std::vector<int64_t> distances(static_cast<size_t>(size));
  int64_t kept = 0;  // neighbours that were also neighbours in the previous epoch
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const Permutation permutation(5, epoch, size), before(5, epoch + epochs, size);
    for (int64_t i = 0; i + 1 < size; ++i) {
      ++distances[static_cast<size_t>((permutation(i + 1) - permutation(i) + size) % size)];
      if (std::abs(permutation(i + 1) - permutation(i)) == 1 &&
          std::abs(before(i + 1) - before(i)) == 1)
        ++kept;
    }
  }
  ASSERT_EQ(distances[0], 0);
  distances.erase(distances.begin());
  EXPECT_LT(chi_square(distances, static_cast<double>(epochs)),
            limit(static_cast<double>(size - 2)));
  EXPECT_LT(kept, 10);  // expected 200 * 1008 * (2 / 1009)^2 = 0.8
}

/// Adjacent positions draw samples from everywhere: the serial correlation is no more than chance.
TEST(Permutation, ASequenceHasNoTrend) {
  for (const int64_t size : {int64_t{100000}, int64_t{1} << 40}) {
    const Permutation permutation(1, 0, size);
    double sum = 0, squares = 0, products = 0, last = 0;
    const int draws = 100000;
    for (int i = 0; i < draws; ++i) {
      const double x = static_cast<double>(permutation(i)) / static_cast<double>(size) - 0.5;
      sum += x;
      squares += x * x;
      if (i > 0) products += x * last;
      last = x;
    }
    EXPECT_NEAR(sum / draws, 0, 5 / std::sqrt(12.0 * draws));
    EXPECT_NEAR(squares / draws, 1.0 / 12, 0.002);
    EXPECT_NEAR(products / squares, 0, 5 / std::sqrt(draws));
  }
}

}  // namespace
}  // namespace tutti::data
