#include "tutti/backend/cpu/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/cpu/kernel/tiled_run.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/ops/batch_norm.h"

namespace tutti::backend {
namespace {

using testing::run_tiled;
using testing::TiledRun;
using testing::Values;

struct NormCase {
  DType type;
  Shape tile;  ///< shape of one tile
  Layout layout;
  std::vector<int> tiles;
  TensorDesc activation() const { return {type, tile, layout}; }
  TensorDesc channel() const { return {DType::f32, {tile[1]}, {}}; }
  int64_t batch() const { return tile[0] * (tiles[0] + (tiles.size() > 1 ? tiles[1] : 0)); }
  int64_t elements() const { return tile.elements_from(1) * batch(); }
  size_t channel_of(size_t i) const {
    return i / static_cast<size_t>(tile.elements_from(2)) % static_cast<size_t>(tile[1]);
  }
  std::string text() const {
    return activation().to_string() + (tiles.size() > 1 ? " two states" : " one state");
  }
};

std::vector<NormCase> cases() {
  std::vector<NormCase> all;
  for (const DType type : {DType::f32, DType::bf16})
    for (const Shape& tile : {Shape{2, 16, 5, 7}, Shape{1, 32, 9, 8}, Shape{3, 64, 2, 3},
                              Shape{2, 112, 3, 1}, Shape{2, 10, 4, 4}, Shape{2, 16, 3, 2, 3},
                              Shape{4, 20}, Shape{2, 248, 3, 2}, Shape{1, 2192, 2, 1}})
      for (const std::vector<int>& tiles : {std::vector<int>{1}, {3}, {2, 1}}) {
        all.push_back({type, tile, Layout::plain(), tiles});
        if (tile.rank() < 4) continue;
        all.push_back({type, tile, Layout::channels_last(tile.rank()), tiles});
        if (tile[1] % 16 == 0) all.push_back({type, tile, Layout::blocked_channels(16), tiles});
      }
  return all;
}

/// All operands of batch norm, and the results of the definition, in double.
struct Reference {
  Values y, residual, gamma, beta, dz, dz2, z;
  Values mean, inv_std;
  std::vector<double> variance;
  double count = 0;

  Reference(const NormCase& c, float offset) {
    const auto channels = static_cast<size_t>(c.tile[1]);
    const auto make = [&](uint64_t stream, float middle = 0) {
      return testing::rounded(testing::random_values(c.elements(), stream, middle), c.type);
    };
    y = make(1, offset);
    residual = make(2);
    dz = make(3);
    dz2 = make(4);
    z = make(5);
    gamma = testing::random_values(c.tile[1], 6);
    beta = testing::random_values(c.tile[1], 7);
    count = static_cast<double>(c.batch() * c.tile.elements_from(2));
    std::vector<double> sum(channels), squares(channels);
    for (size_t i = 0; i < y.size(); ++i) sum[c.channel_of(i)] += y[i];
    for (size_t i = 0; i < y.size(); ++i)
      squares[c.channel_of(i)] += std::pow(y[i] - sum[c.channel_of(i)] / count, 2);
    for (size_t k = 0; k < channels; ++k) {
      variance.push_back(squares[k] / count);
      mean.push_back(static_cast<float>(sum[k] / count));
      inv_std.push_back(static_cast<float>(1 / std::sqrt(variance[k] + 1e-5)));
    }
  }
};

void expect_near(const Values& got, const std::vector<double>& want, double relative,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], relative * (1 + std::abs(want[i]))) << what << " element " << i;
}

double tolerance(DType type) { return type == DType::bf16 ? 1.0 / 200 : 2e-5; }

KernelCandidate only(const graph::Op& op, std::vector<TensorDesc> in, std::vector<TensorDesc> out) {
  const size_t inputs = in.size(), outputs = out.size();
  auto found = CpuBackend().candidates(
      {&op, std::move(in), std::move(out), std::vector<bool>(inputs), std::vector<bool>(outputs)});
  EXPECT_TRUE(found.at(0).name.starts_with("cpu:")) << found.at(0).name;
  EXPECT_EQ(found.at(0).refusal, "");
  return found.at(0);
}

TEST(CpuBatchNorm, StatisticsAndRunningAverages) {
  for (const NormCase& c : cases())
    for (const float offset : {0.f, c.type == DType::f32 ? 3000.f : 8.f}) {
      const Reference ref(c, offset);
      const ops::BatchNormStats op({.momentum = 0.25f});
      const TensorDesc ch = c.channel();
      std::vector<Values> in{ref.y, Values(ref.mean.size(), 2.f), Values(ref.mean.size(), 4.f)};
      const auto out = run_tiled(only(op, {c.activation(), ch, ch}, {ch, ch}), in,
                                 {c.tiles, {true, false, false}, {false, false}});
      const auto as_double = [](const Values& v) {
        return std::vector<double>(v.begin(), v.end());
      };
      expect_near(out[0], as_double(ref.mean), 1e-6, c.text() + " mean");
      expect_near(out[1], as_double(ref.inv_std), 2e-5, c.text() + " inv_std");
      std::vector<double> running_mean, running_var;
      for (size_t k = 0; k < ref.mean.size(); ++k) {
        running_mean.push_back(0.75 * 2 + 0.25 * double{ref.mean[k]});
        running_var.push_back(0.75 * 4 + 0.25 * ref.variance[k] * ref.count / (ref.count - 1));
      }
      expect_near(in[1], running_mean, 1e-6, c.text() + " running mean");
      expect_near(in[2], running_var, 2e-5, c.text() + " running variance");
      if (HasFatalFailure()) return;
    }
}

TEST(CpuBatchNorm, AveragesKeepWhatABatchSaysNothingOf) {
  const TensorDesc a{DType::f32, {1, 2, 1}, {}}, ch{DType::f32, {2}, {}};
  const TiledRun one{{1}, {true, false, false}, {false, false}};
  std::vector<Values> in{{3, 5}, {1, 1}, {2, 2}};
  run_tiled(only(ops::BatchNormStats({.momentum = 0.5f}), {a, ch, ch}, {ch, ch}), in, one);
  EXPECT_EQ(in[1], (Values{2, 3}));
  EXPECT_EQ(in[2], (Values{2, 2})) << "of one value there is no variance";
  in = {{NAN, INFINITY, 1, 2}, {1, 1}, {2, 2}};
  const TensorDesc two{DType::f32, {2, 2, 1}, {}};
  run_tiled(only(ops::BatchNormStats({.momentum = 0}), {two, ch, ch}, {ch, ch}), in, one);
  EXPECT_EQ(in[1], (Values{1, 1}));
  EXPECT_EQ(in[2], (Values{2, 2}));
}

TEST(CpuBatchNorm, ApplyAndInference) {
  for (const NormCase& c : cases())
    for (int flags = 0; flags < 4; ++flags) {
      const bool relu = flags & 1, residual = flags & 2;
      const Reference ref(c, 1.f);
      const TensorDesc a = c.activation(), ch = c.channel();
      std::vector<double> want(ref.y.size());
      for (size_t i = 0; i < want.size(); ++i) {
        const size_t k = c.channel_of(i);
        want[i] = double{ref.gamma[k]} * (double{ref.y[i]} - double{ref.mean[k]}) *
                      double{ref.inv_std[k]} +
                  double{ref.beta[k]} + (residual ? double{ref.residual[i]} : 0);
        if (relu) want[i] = std::max(want[i], 0.0);
      }
      const ops::BatchNormApply apply(relu, residual);
      const ops::BatchNormInference inference(relu, residual, 1e-5f);
      const Values variance(ref.variance.begin(), ref.variance.end());
      for (const bool training : {true, false}) {
        std::vector<Values> in{ref.y, ref.mean, training ? ref.inv_std : variance, ref.gamma,
                               ref.beta};
        std::vector<TensorDesc> descs{a, ch, ch, ch, ch};
        TiledRun how{c.tiles, {true, false, false, false, false}, {true}};
        if (residual) {
          in.push_back(ref.residual);
          descs.push_back(a);
          how.batched_in.push_back(true);
        }
        const auto out = run_tiled(
            only(training ? static_cast<const graph::Op&>(apply) : inference, descs, {a}), in, how);
        expect_near(out[0], want, tolerance(c.type), c.text());
      }
      if (HasFatalFailure()) return;
    }
}

TEST(CpuBatchNorm, GradReduceAlsoInPlace) {
  for (const NormCase& c : cases())
    for (int flags = 0; flags < 8; ++flags) {
      const bool relu = flags & 1, two = flags & 2;
      const Reference ref(c, 1.f);
      const TensorDesc a = c.activation(), ch = c.channel();
      std::vector<double> g(ref.y.size()), dgamma(ref.mean.size()), dbeta(ref.mean.size()),
          size(ref.mean.size());
      for (size_t i = 0; i < g.size(); ++i) {
        const size_t k = c.channel_of(i);
        g[i] = double{ref.dz[i]} + (two ? double{ref.dz2[i]} : 0);
        if (relu && ref.z[i] <= 0) g[i] = 0;
        dbeta[k] += g[i];
        dgamma[k] += g[i] * (double{ref.y[i]} - double{ref.mean[k]}) * double{ref.inv_std[k]};
      }
      const ops::BatchNormGradReduce op(relu, two);
      std::vector<Values> in{ref.dz, ref.y, ref.mean, ref.inv_std};
      std::vector<TensorDesc> descs{a, a, ch, ch};
      TiledRun how{c.tiles, {true, true, false, false}, {true, false, false}, (flags & 4) != 0};
      for (const auto& [used, values] : {std::pair{relu, &ref.z}, std::pair{two, &ref.dz2}})
        if (used) {
          in.push_back(*values);
          descs.push_back(a);
          how.batched_in.push_back(true);
        }
      const auto out = run_tiled(only(op, descs, {a, ch, ch}), in, how);
      expect_near(out[0], g, tolerance(c.type), c.text() + " g");
      const double sums = 1e-6 * std::sqrt(ref.count) + 1e-5;
      expect_near(out[1], dgamma, sums, c.text() + " dgamma");
      expect_near(out[2], dbeta, sums, c.text() + " dbeta");
      if (HasFatalFailure()) return;
    }
}

TEST(CpuBatchNorm, GradApplyAlsoInPlace) {
  for (const NormCase& c : cases())
    for (const bool in_place : {false, true}) {
      const Reference ref(c, 1.f);
      const TensorDesc a = c.activation(), ch = c.channel();
      const Values dgamma = testing::random_values(c.tile[1], 8, 20.f),
                   dbeta = testing::random_values(c.tile[1], 9, -20.f);
      std::vector<double> want(ref.y.size());
      for (size_t i = 0; i < want.size(); ++i) {
        const size_t k = c.channel_of(i);
        const double xhat = (double{ref.y[i]} - double{ref.mean[k]}) * double{ref.inv_std[k]};
        want[i] = double{ref.gamma[k]} * double{ref.inv_std[k]} *
                  (double{ref.dz[i]} - double{dbeta[k]} / ref.count -
                   xhat * double{dgamma[k]} / ref.count);
      }
      const ops::BatchNormGradApply op;
      std::vector<Values> in{ref.dz, ref.y, ref.mean, ref.inv_std, ref.gamma, dgamma, dbeta};
      const auto out =
          run_tiled(only(op, {a, a, ch, ch, ch, ch, ch}, {a}), in,
                    {c.tiles, {true, true, false, false, false, false, false}, {true}, in_place});
      expect_near(out[0], want, tolerance(c.type), c.text());
      if (HasFatalFailure()) return;
    }
}

TEST(CpuBatchNorm, RefusesMixedOperandsAndOddLayouts) {
  const ops::BatchNormGradApply op;
  const TensorDesc a{DType::f32, {2, 16, 4, 4}, {}}, ch{DType::f32, {16}, {}};
  TensorDesc other = a;
  other.layout = Layout::channels_last(4);
  const auto mixed = CpuBackend().candidates(
      {&op, {a, other, ch, ch, ch, ch, ch}, {a}, std::vector<bool>(7), {false}});
  EXPECT_NE(mixed.at(0).refusal.find("share type and layout"), std::string::npos);
  TensorDesc odd{DType::f32, {2, 17, 4, 4}, Layout::blocked_channels(16)};
  const auto padded = CpuBackend().candidates(
      {&op, {odd, odd, ch, ch, ch, ch, ch}, {odd}, std::vector<bool>(7), {false}});
  EXPECT_NE(padded.at(0).refusal.find("[N, C/b, positions, b]"), std::string::npos);
}

TEST(Simd, RoundsToBf16LikeTheScalarType) {
  const uint32_t patterns[16] = {0x3F808000u, 0x3F818000u, 0x3F808001u, 0x7F800000u,
                                 0x7FC00001u, 0x7F7FFFFFu, 0x80000000u, 0xBF808000u,
                                 0x3F800000u, 0x42F6E979u, 0xC2F6E979u, 0x3DCCCCCDu,
                                 0x00800000u, 0x7F800000u, 0xFF800000u, 0x3F7FFFFFu};
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = std::bit_cast<float>(patterns[i]);
  const simd::Floats v = simd::load(values, simd::AllLanes{});
  bf16 all[16], some[16];
  simd::store(all, v, simd::AllLanes{});
  simd::store(some, v, simd::SomeLanes{5});
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(all[i].bits, bf16(v[i]).bits) << i;
    EXPECT_EQ(some[i].bits, i < 5 ? all[i].bits : 0) << i;
  }
}

TEST(Simd, ComparisonsKnowNanZerosAndInfinities) {
  const float inf = INFINITY;
  const float a[16] = {-1, 0, -0.f, 1, inf, -inf, NAN, 2, -3, 0, -0.f, inf, -inf, NAN, 5, -6};
  const float b[16] = {1, -0.f, 0, 1, -inf, inf, 1, NAN, -4, 1, -1, inf, -inf, NAN, 6, -5};
  const simd::Floats va = simd::load(a, simd::AllLanes{}), vb = simd::load(b, simd::AllLanes{});
  const simd::Floats less = simd::where_less(va, vb, simd::splat(7), simd::splat(8));
  const simd::Floats positive = simd::where_positive(va, vb), first = simd::first_lanes(va, 9);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(less[i], a[i] < b[i] ? 7 : 8) << i;
    const float expected = a[i] > 0 ? b[i] : 0;
    EXPECT_TRUE(positive[i] == expected || (std::isnan(positive[i]) && std::isnan(expected))) << i;
    EXPECT_EQ(std::isnan(first[i]), i < 9 && std::isnan(a[i])) << i;
    if (!std::isnan(first[i])) {
      EXPECT_EQ(first[i], i < 9 ? a[i] : 0) << i;
    }
  }
}

TEST(Simd, ReluKeepsNan) {
  const simd::Floats v = simd::relu(simd::splat(NAN));
  EXPECT_TRUE(std::isnan(v[3]));
  EXPECT_EQ(simd::relu(simd::splat(-2.f))[0], 0.f);
  EXPECT_EQ(simd::relu(simd::splat(2.f))[15], 2.f);
}

}  // namespace
}  // namespace tutti::backend
