#include "tutti/comm/compress/codec/powersgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/compress/codec/codec_samples.h"

namespace tutti::comm {
namespace {

// Returns a matrix of the given rank; its k-th part is half as large as the one before.
Floats low_rank(PowerSgd::Matrix size, int rank, uint64_t stream) {
  Floats m(size.count(), 0.0f);
  for (int k = 0; k < rank; ++k) {
    const Floats left = random_values(size.rows, stream + 100 * static_cast<uint64_t>(k));
    const Floats right = random_values(size.cols, stream + 100 * static_cast<uint64_t>(k) + 1);
    for (size_t i = 0; i < size.count(); ++i)
      m[i] += std::ldexp(left[i / size.cols] * right[i % size.cols], -k);
  }
  return m;
}

double distance(const Floats& a, const Floats& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum / squares_of(a));
}

void expect_orthonormal(const Floats& p, size_t rows, size_t rank) {
  for (size_t a = 0; a < rank; ++a)
    for (size_t b = 0; b <= a; ++b) {
      double product = 0;
      for (size_t i = 0; i < rows; ++i)
        product += static_cast<double>(p[a * rows + i]) * p[b * rows + i];
      EXPECT_NEAR(product, a == b ? 1 : 0, 2e-6) << "columns " << a << ", " << b;
    }
}

// One rank alone, its state and its steps.
struct Alone {
  Alone(PowerSgd::Matrix size, int rank)
      : sgd(size, rank, 3), p(sgd.p_count()), q(sgd.q_count()), decoded(size.count()) {
    sgd.begin(q);
  }
  void step(const Floats& m) {
    sgd.project(m, q, p);
    sgd.orthogonalize(p);
    sgd.back_project(m, p, q);
    sgd.decode(p, q, decoded);
  }
  PowerSgd sgd;
  Floats p, q, decoded;
};

TEST(PowerSgd, AConvolutionsWeightsAreOutputsByTheRest) {
  const PowerSgd::Matrix matrix = PowerSgd::matrix_of({64, 16, 3, 3});
  EXPECT_EQ(matrix.rows, 64u);
  EXPECT_EQ(matrix.cols, 144u);
  for (const Shape& shape :
       {Shape{}, Shape{64}, Shape{64, 1}, Shape{1, 64, 3, 3}, Shape{10, 1, 1, 1}})
    EXPECT_THROW(PowerSgd::matrix_of(shape), ConfigError);
}

TEST(PowerSgd, RanksOutsideTheMatrixAreRefused) {
  for (const int rank : {-1, 0, 7}) EXPECT_THROW(PowerSgd({6, 9}, rank, 1), ConfigError) << rank;
  const PowerSgd sgd({6, 9}, 2, 1);
  EXPECT_EQ(sgd.p_count(), 12u);
  EXPECT_EQ(sgd.q_count(), 18u);
  EXPECT_TRUE(sgd.saves());
  EXPECT_FALSE(PowerSgd({6, 9}, 6, 1).saves());
}

TEST(PowerSgd, OneStepRestoresAMatrixOfItsRank) {
  for (const PowerSgd::Matrix size : {PowerSgd::Matrix{2, 2}, {5, 700}, {300, 7}, {64, 144}})
    for (const int rank : {1, 2, 4}) {
      if (static_cast<size_t>(rank) > std::min(size.rows, size.cols)) continue;
      Alone alone(size, rank);
      const Floats m = low_rank(size, rank, 5);
      alone.step(m);
      EXPECT_LT(distance(m, alone.decoded), 1e-5)
          << size.rows << "x" << size.cols << " rank " << rank;
      expect_orthonormal(alone.p, size.rows, static_cast<size_t>(rank));
    }
}

// Computes the rows of M^ and of the products as plainly as possible.
TEST(PowerSgd, StagesAreTheProductsThatTheySay) {
  constexpr size_t kRows = 3, kCols = 5, kRank = 2;
  const PowerSgd sgd({kRows, kCols}, kRank, 1);
  const Floats m = random_values(kRows * kCols, 1);
  Floats q = random_values(kCols * kRank, 2), p(kRows * kRank), decoded(kRows * kCols);
  sgd.project(m, q, p);
  for (size_t i = 0; i < kRows; ++i)
    for (size_t j = 0; j < kRank; ++j) {
      double sum = 0;
      for (size_t c = 0; c < kCols; ++c)
        sum += static_cast<double>(m[i * kCols + c]) * q[j * kCols + c];
      EXPECT_NEAR(p[j * kRows + i], sum, 1e-6);
    }
  sgd.back_project(m, p, q);
  for (size_t c = 0; c < kCols; ++c)
    for (size_t j = 0; j < kRank; ++j) {
      double sum = 0;
      for (size_t i = 0; i < kRows; ++i)
        sum += static_cast<double>(m[i * kCols + c]) * p[j * kRows + i];
      EXPECT_NEAR(q[j * kCols + c], sum, 3e-6);
    }
  sgd.decode(p, q, decoded);
  for (size_t i = 0; i < kRows; ++i)
    for (size_t c = 0; c < kCols; ++c)
      EXPECT_NEAR(decoded[i * kCols + c], p[i] * q[c] + p[kRows + i] * q[kCols + c], 2e-5);
  EXPECT_THROW(sgd.project(p, q, p), InternalError) << "a matrix of another size";
}

TEST(PowerSgd, TheWarmStartFindsTheBestApproximation) {
  const PowerSgd::Matrix size{40, 60};
  const Floats m = low_rank(size, 6, 9);
  Alone alone(size, 2);
  alone.step(m);
  const double first = distance(m, alone.decoded);
  for (int step = 0; step < 30; ++step) alone.step(m);
  const double warm = distance(m, alone.decoded);
  Alone cold(size, 2);
  for (int step = 0; step < 100; ++step) cold.step(m);
  EXPECT_LT(warm, 0.97 * first);
  EXPECT_NEAR(warm, distance(m, cold.decoded), 1e-4)
      << "it has converged: no more iterations make it better";
}

TEST(PowerSgd, DecodedAndResidualAreTheMatrix) {
  for (const size_t cols : {9, 256, 600}) {  // below, at and above one strip
    const PowerSgd::Matrix size{20, cols};
    Alone alone(size, 3);
    Floats m = random_values(size.count(), 2);
    const Floats whole = m;
    alone.step(m);
    const double cost = alone.sgd.finish(alone.p, alone.q, m).ratio();
    Floats rest(size.count());
    for (size_t i = 0; i < rest.size(); ++i) rest[i] = whole[i] - alone.decoded[i];
    EXPECT_TRUE(same_bits(rest, m)) << cols;
    EXPECT_NEAR(cost, squares_of(rest) / squares_of(whole), 1e-12);
    EXPECT_LT(cost, 1);
  }
}

TEST(PowerSgd, EverythingIsSentInTheLongRun) {
  const PowerSgd::Matrix size{30, 50};
  Alone alone(size, 2);
  Floats acc(size.count(), 0.0f);
  std::vector<double> given(size.count()), sent(size.count());
  for (uint64_t step = 0; step < 40; ++step) {
    const Floats gradient = random_values(size.count(), 20 + step);
    for (size_t i = 0; i < acc.size(); ++i) acc[i] += gradient[i], given[i] += gradient[i];
    alone.step(acc);
    alone.sgd.finish(alone.p, alone.q, acc);
    for (size_t i = 0; i < acc.size(); ++i) sent[i] += alone.decoded[i];
  }
  for (size_t i = 0; i < acc.size(); ++i) ASSERT_NEAR(sent[i] + acc[i], given[i], 1e-4);
}

// Two ranks' halves with the sums between them give the same as one rank with the mean.
TEST(PowerSgd, TheSumsOfTwoRanksMakeTheMeanMatrix) {
  const PowerSgd::Matrix size{30, 50};
  const PowerSgd sgd(size, 2, 3);
  const Floats m[2] = {random_values(size.count(), 1), random_values(size.count(), 2)};
  Floats mean(size.count());
  for (size_t i = 0; i < mean.size(); ++i) mean[i] = (m[0][i] + m[1][i]) / 2;
  Alone alone(size, 2);
  alone.step(mean);

  Floats q(sgd.q_count()), p[2], back[2], decoded(size.count());
  sgd.begin(q);
  for (size_t r = 0; r < 2; ++r)
    p[r].resize(sgd.p_count()), back[r].resize(sgd.q_count()), sgd.project(m[r], q, p[r]);
  for (size_t i = 0; i < p[0].size(); ++i) p[0][i] += p[1][i];
  sgd.orthogonalize(p[0]);
  for (size_t r = 0; r < 2; ++r) sgd.back_project(m[r], p[0], back[r]);
  for (size_t i = 0; i < q.size(); ++i) q[i] = (back[0][i] + back[1][i]) / 2;
  sgd.decode(p[0], q, decoded);
  EXPECT_LT(distance(alone.decoded, decoded), 1e-5);
}

TEST(PowerSgd, DependentColumnsAreReplacedAndComeBack) {
  const PowerSgd::Matrix size{20, 30};
  Alone alone(size, 3);
  const Floats zero(size.count(), 0.0f);
  alone.step(zero);
  expect_orthonormal(alone.p, size.rows, 3);
  EXPECT_EQ(alone.decoded, zero);
  alone.step(low_rank(size, 1, 4));  // Q was zero: all columns are new ones
  expect_orthonormal(alone.p, size.rows, 3);
  const Floats m = low_rank(size, 3, 8);
  alone.step(m);
  alone.step(m);
  EXPECT_LT(distance(m, alone.decoded), 1e-5) << "no direction is lost for ever";

  const PowerSgd sgd({50, 60}, 3, 1);
  Floats p(sgd.p_count()), again;
  const Floats column = random_values(50, 3);
  for (size_t i = 0; i < p.size(); ++i)
    p[i] = column[i % 50] * (1 + 1e-4f * static_cast<float>(i / 50));
  again = p;
  sgd.orthogonalize(p);
  expect_orthonormal(p, 50, 3);
  sgd.orthogonalize(again);
  EXPECT_EQ(p, again) << "the random columns too are a function of the seed";
  const PowerSgd square({2, 2}, 2, 1);
  Floats full{1, 1, 1, 1};
  square.orthogonalize(full);
  expect_orthonormal(full, 2, 2);
}

TEST(PowerSgd, WhatIsNotFiniteIsSeenEverywhereAndPasses) {
  for (const float bad : {kNan, kInf}) {
    const PowerSgd::Matrix size{20, 30};
    Alone alone(size, 3);
    const Floats good = low_rank(size, 3, 8);
    Floats m = good;
    m[77] = bad;
    alone.step(m);
    EXPECT_TRUE(std::ranges::all_of(alone.decoded, [](float x) { return std::isnan(x); }));
    EXPECT_FALSE(std::isfinite(alone.sgd.finish(alone.p, alone.q, m).ratio()));
    EXPECT_TRUE(all_finite(m));
    alone.step(good);
    EXPECT_LT(distance(good, alone.decoded), 1e-5);
  }
}

TEST(PowerSgd, TheFirstQIsAFunctionOfTheSeed) {
  const PowerSgd::Matrix size{20, 1000};
  Floats a(2000), b(2000), c(2000);
  PowerSgd(size, 2, 1).begin(a);
  PowerSgd(size, 2, 1).begin(b);
  PowerSgd(size, 2, 2).begin(c);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  double mean = 0, product = 0;
  for (size_t i = 0; i < 1000; ++i)
    mean += (a[i] + a[1000 + i]) / 2000, product += a[i] * a[1000 + i] / 1000;
  EXPECT_NEAR(mean, 0, 0.05);
  EXPECT_NEAR(squares_of(a) / 2000, 1.0 / 3, 0.03);
  EXPECT_NEAR(product, 0, 0.05) << "columns are independent";
}

}  // namespace
}  // namespace tutti::comm
