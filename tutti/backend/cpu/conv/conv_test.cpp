#include "tutti/backend/cpu/conv/conv.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/cpu/kernel/tiled_run.h"
#include "tutti/backend/cpu/onednn/onednn.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/base/error.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/conv_transpose.h"

namespace tutti::backend {
namespace {

using testing::run_tiled;
using testing::Values;

struct ConvCase {
  const char* name;
  int64_t channels, outputs;
  std::array<int64_t, 3> in;  ///< spatial extents, unused ones 1
  int64_t kernel;
  ops::ConvAttributes a;
};

ops::ConvAttributes attributes(int spatial, int64_t stride, int64_t low, int64_t high,
                               int64_t dilation = 1, int64_t groups = 1) {
  ops::ConvAttributes a;
  a.spatial = spatial;
  a.groups = groups;
  for (size_t i = 0; i < static_cast<size_t>(spatial); ++i) {
    a.stride[i] = stride;
    a.pad_low[i] = low;
    a.pad_high[i] = high;
    a.dilation[i] = dilation;
  }
  return a;
}

const std::vector<ConvCase>& conv_cases() {
  static const std::vector<ConvCase> all{
      {"3x3", 16, 32, {7, 9, 1}, 3, attributes(2, 1, 1, 1)},
      {"strided", 32, 16, {8, 8, 1}, 3, attributes(2, 2, 1, 1)},
      {"asymmetric", 16, 16, {9, 8, 1}, 3, attributes(2, 2, 0, 1)},
      {"dilated", 16, 16, {10, 9, 1}, 3, attributes(2, 1, 2, 2, 2)},
      {"grouped", 32, 32, {6, 6, 1}, 3, attributes(2, 1, 1, 1, 1, 2)},
      {"depthwise", 16, 16, {6, 6, 1}, 3, attributes(2, 1, 1, 1, 1, 16)},
      {"stem", 3, 16, {8, 10, 1}, 3, attributes(2, 1, 1, 1)},
      {"odd", 5, 10, {6, 5, 1}, 3, attributes(2, 1, 1, 1)},
      {"pointwise", 16, 32, {4, 4, 1}, 1, attributes(2, 1, 0, 0)},
      {"strided pointwise", 16, 32, {8, 8, 1}, 1, attributes(2, 2, 0, 0)},
      {"narrow strided pointwise", 4, 8, {16, 16, 1}, 1, attributes(2, 2, 0, 0)},
      {"odd strided pointwise", 12, 20, {6, 6, 1}, 1, attributes(2, 2, 0, 0)},
      {"16 pixels", 32, 16, {3, 16, 1}, 3, attributes(2, 1, 1, 1)},
      {"48 pixels", 16, 16, {2, 48, 1}, 3, attributes(2, 1, 1, 1)},
      {"8 pixels", 32, 64, {5, 8, 1}, 3, attributes(2, 1, 1, 1)},
      {"one row", 16, 16, {1, 32, 1}, 3, attributes(2, 1, 1, 1)},
      {"more channels than one sum", 300, 24, {5, 6, 1}, 2, attributes(2, 2, 1, 0)},
      {"more pixels than one block", 20, 40, {22, 20, 1}, 1, attributes(2, 1, 0, 0)},
      {"channels in every row of a tile", 272, 27, {7, 5, 1}, 1, attributes(2, 1, 0, 0)},
      {"dilated beyond the image", 24, 16, {6, 7, 1}, 3, attributes(2, 1, 5, 5, 5)},
      {"strided over taps", 9, 17, {9, 11, 1}, 2, attributes(2, 3, 0, 1)},
      {"volume", 16, 16, {3, 4, 2}, 3, attributes(3, 1, 1, 1)},
      {"volume stem", 4, 16, {4, 3, 4}, 3, attributes(3, 2, 1, 1)},
  };
  return all;
}

/// One convolution in plain order; computed by loops straight from the definition.
struct Problem {
  ConvCase c;
  int64_t batch;
  std::array<int64_t, 3> out{1, 1, 1}, k{1, 1, 1};

  Problem(const ConvCase& which, int64_t n) : c(which), batch(n) {
    for (size_t i = 0; i < static_cast<size_t>(c.a.spatial); ++i) {
      k[i] = c.kernel;
      out[i] = (c.in[i] + c.a.pad_low[i] + c.a.pad_high[i] - c.a.dilation[i] * (c.kernel - 1) - 1) /
                   c.a.stride[i] +
               1;
    }
  }
  Shape shape(int64_t n, int64_t channels, const std::array<int64_t, 3>& extent) const {
    return c.a.spatial == 2 ? Shape{n, channels, extent[0], extent[1]}
                            : Shape{n, channels, extent[0], extent[1], extent[2]};
  }
  Shape x_shape(int64_t n) const { return shape(n, c.channels, c.in); }
  Shape y_shape(int64_t n) const { return shape(n, c.outputs, out); }
  Shape w_shape() const { return shape(c.outputs, c.channels / c.a.groups, k); }

  /// Calls visit(index of y, index of x, index of w) for all products.
  template <class Visit>
  void for_each_product(Visit visit) const {
    const int64_t per = c.channels / c.a.groups, out_per = c.outputs / c.a.groups;
    const auto from = [this](size_t d, int64_t at, int64_t tap) {
      return at * c.a.stride[d] - c.a.pad_low[d] + tap * c.a.dilation[d];
    };
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t o = 0; o < c.outputs; ++o)
        for (int64_t i = 0; i < per; ++i)
          for (int64_t position = 0; position < out[0] * out[1] * out[2]; ++position)
            for (int64_t row = 0; row < k[0] * k[1]; ++row) {
              const int64_t d = from(0, position / (out[1] * out[2]), row / k[1]);
              const int64_t h = from(1, position / out[2] % out[1], row % k[1]);
              if (d < 0 || d >= c.in[0] || h < 0 || h >= c.in[1]) continue;
              for (int64_t tap = 0; tap < k[2]; ++tap) {
                const int64_t w = from(2, position % out[2], tap);
                if (w < 0 || w >= c.in[2]) continue;
                const int64_t channel = o / out_per * per + i;
                visit(
                    static_cast<size_t>((n * c.outputs + o) * out[0] * out[1] * out[2] + position),
                    static_cast<size_t>(
                        (((n * c.channels + channel) * c.in[0] + d) * c.in[1] + h) * c.in[2] + w),
                    static_cast<size_t>(((o * per + i) * k[0] * k[1] + row) * k[2] + tap));
              }
            }
  }
};

enum class Adds { by_kernel, by_loops, twice, coarsely };
/// Compares |got - want| with the size of the sums: f32 by rounding of long sums, bf16 by the
/// result's 8 bits. `by_loops`: oneDNN's reference loops, which add one product after the other.
/// Operands rounded to fewer bits, or a missing product, give errors a hundred times as large.
/// `twice`: a bias is added to the rounded sum, and the wanted value is rounded as well.
/// `coarsely`: points are rounded to 8 bits before they are multiplied (KernelCandidate::error), so
/// that sums are wrong by 0.5 % of their size, rarely 3 %.
void expect_close(const Values& got, const std::vector<double>& want, DType type, Adds adds,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  double scale = 0;
  for (const double v : want) scale = std::max(scale, std::abs(v));
  const double narrow = 1.0 / 200;
  const double tolerance = adds == Adds::coarsely ? 8 * narrow
                                                  : (type == DType::bf16 ? narrow : 4e-6) *
                                                        (adds == Adds::by_kernel ? 1 : 2);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * (std::abs(want[i]) + 0.2 * scale))
        << what << " element " << i;
}

std::vector<Layout> layouts_of(int64_t channels, int rank) {
  std::vector<Layout> all{Layout::plain(), Layout::channels_last(rank)};
  if (channels % 16 == 0) all.push_back(Layout::blocked_channels(16));
  return all;
}

/// One convolution's operands and the results of its three ops.
struct Operands {
  Values x, w, b, dy;
  std::vector<double> y, bare, dx, dw;  ///< y: with bias and ReLU; bare: without
  int64_t products = 0;
  Operands(const Problem& p, DType type) {
    x = testing::rounded(testing::random_values(p.x_shape(p.batch).elements(), 1), type);
    w = testing::rounded(testing::random_values(p.w_shape().elements(), 2), type);
    b = testing::random_values(p.c.outputs, 3);
    dy = testing::rounded(testing::random_values(p.y_shape(p.batch).elements(), 4), type);
    y.resize(dy.size());
    dx.resize(x.size());
    dw.resize(w.size());
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = b[i / static_cast<size_t>(p.out[0] * p.out[1] * p.out[2]) % b.size()];
    p.for_each_product([&](size_t iy, size_t ix, size_t iw) {
      ++products;
      y[iy] += double{x[ix]} * double{w[iw]};
      dx[ix] += double{dy[iy]} * double{w[iw]};
      dw[iw] += double{x[ix]} * double{dy[iy]};
    });
    bare = y;
    for (size_t i = 0; i < y.size(); ++i)
      bare[i] -= b[i / static_cast<size_t>(p.out[0] * p.out[1] * p.out[2]) % b.size()];
    for (double& v : y) v = std::max(v, 0.0);
  }
};

/// Runs the accepted candidates; returns their number.
int expect_all_match(const KernelRequest& r, std::vector<Values> in,
                     const std::vector<double>& want, const testing::TiledRun& how,
                     int64_t products) {
  int accepted = 0;
  for (const KernelCandidate& c : CpuBackend().candidates(r)) {
    if (!c.refusal.empty() || c.name == "reference") continue;
    ++accepted;
    // Only the operands of a library's reference loops are ours: few products test these.
    if (c.speed != KernelSpeed::fast && products > 300000) continue;
    const auto out = run_tiled(c, in, how);
    const bool loops = c.name.starts_with("onednn:ref") && c.out[0].dtype == DType::f32;
    expect_close(out[0], want, c.out[0].dtype,
                 c.error > 1 ? Adds::coarsely
                 : loops     ? Adds::by_loops
                             : Adds::by_kernel,
                 fmt::format("{} {} in {} {} out {}", r.op->name(), c.name, c.in[0].to_string(),
                             c.in[1].to_string(), c.out[0].to_string()));
  }
  return accepted;
}

TEST(CpuConv, MatchesTheDefinition) {
  constexpr int64_t kTile = 2;
  for (const ConvCase& which : conv_cases())
    for (const DType type : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(which.name);
      const Problem p(which, 3 * kTile);
      const Operands o(p, type);
      const TensorDesc wd{DType::f32, p.w_shape(), {}}, bd{DType::f32, {which.outputs}, {}};
      const ops::Conv forward(which.a, true, ops::ActivationAttributes{}), bare(which.a, false);
      const ops::ConvBackwardData data(which.a, p.x_shape(kTile));
      const ops::ConvBackwardWeights weights(which.a, p.w_shape());
      for (const Layout& xl : layouts_of(which.channels, which.a.spatial + 2))
        for (const Layout& yl : layouts_of(which.outputs, which.a.spatial + 2)) {
          if (xl != yl && which.channels % 16 == 0 && which.outputs % 16 == 0)
            continue;  // reference loops only: slow, and not ours
          const TensorDesc xd{type, p.x_shape(kTile), xl}, yd{type, p.y_shape(kTile), yl};
          int accepted = expect_all_match(
              {&forward, {xd, wd, bd}, {yd}, {false, true, false}, {false}}, {o.x, o.w, o.b}, o.y,
              {{2, 1}, {true, false, false}, {true}}, o.products);
          accepted += expect_all_match({&bare, {xd, wd}, {yd}, {false, true}, {false}}, {o.x, o.w},
                                       o.bare, {{3}, {true, false}, {true}}, o.products);
          accepted += expect_all_match({&data, {yd, wd}, {xd}, {false, true}, {false}}, {o.dy, o.w},
                                       o.dx, {{3}, {true, false}, {true}}, o.products);
          for (const std::vector<int>& tiles : {std::vector<int>{3}, {2, 1}})
            accepted +=
                expect_all_match({&weights, {xd, yd}, {wd}, {false, false}, {true}}, {o.x, o.dy},
                                 o.dw, {tiles, {true, true}, {false}}, o.products);
          EXPECT_GE(accepted, 5) << xd.to_string() << " " << yd.to_string();
          if (HasFatalFailure()) return;
        }
    }
}

TEST(CpuConv, DirectKernelsCoverWhatTheyPromise) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const ConvCase& which : conv_cases()) {
      const Problem p(which, 2);
      const std::string name = which.name;
      const bool wanted =
          name == "16 pixels" || name == "48 pixels" || name == "8 pixels" || name == "one row";
      const TensorDesc x{type, p.x_shape(2), Layout::blocked_channels(16)},
          y{type, p.y_shape(2), Layout::blocked_channels(16)};
      const TensorDesc w{DType::f32, p.w_shape(), {}};
      const ops::ConvBackwardWeights op(which.a, p.w_shape());
      bool accepted = false, listed = false;
      for (const auto& c : CpuBackend().candidates({&op, {x, y}, {w}, {false, false}, {true}}))
        if (c.name == "cpu:direct_3x3") {
          listed = true;
          accepted = c.refusal.empty();
        }
      EXPECT_TRUE(listed) << name;
      EXPECT_EQ(accepted, wanted && TUTTI_AVX512) << name;
    }
}

/// The block of channels for which oneDNN has fast kernels on every processor.
constexpr int kRegister = TUTTI_AVX512 ? 16 : 8;

TEST(CpuConv, TakesWeightsInAGivenLayout) {
  const Problem p(conv_cases()[0], 2);
  const TensorDesc x{DType::f32, p.x_shape(2), Layout::blocked_channels(kRegister)},
      y{DType::f32, p.y_shape(2), Layout::blocked_channels(kRegister)};
  const ops::Conv forward(p.c.a, false);
  const TensorDesc free{DType::f32, p.w_shape(), {}};
  const auto chosen = CpuBackend().candidates({&forward, {x, free}, {y}, {false, true}, {false}});
  ASSERT_TRUE(chosen.at(0).refusal.empty());
  EXPECT_FALSE(chosen[0].in[1].layout.is_plain());
  const auto fixed =
      CpuBackend().candidates({&forward, {x, chosen[0].in[1]}, {y}, {false, false}, {false}});
  ASSERT_TRUE(fixed.at(0).refusal.empty()) << fixed[0].refusal;
  EXPECT_EQ(fixed[0].in[1], chosen[0].in[1]);
}

TEST(CpuConv, RefusesWithAReason) {
  const Problem p(conv_cases()[0], 2);
  const ops::Conv forward(p.c.a, false);
  const TensorDesc x{DType::bf16, p.x_shape(2), {}}, y{DType::f32, p.y_shape(2), {}},
      w{DType::f32, p.w_shape(), {}};
  const auto mixed = CpuBackend().candidates({&forward, {x, w}, {y}, {false, true}, {false}});
  EXPECT_NE(mixed.at(0).refusal.find("different types"), std::string::npos);
  const auto wide = CpuBackend().candidates(
      {&forward, {x, w}, {{DType::bf16, y.shape, {}}}, {false, false}, {false}});
  EXPECT_NE(wide.at(0).refusal.find("needs bf16"), std::string::npos);
}

// oneDNN supports bf16 on some processors only.
TEST(CpuConv, GradientsOfWeightsThatTheTeamSharesAreWidenedToo) {
  const ops::ConvBackwardWeights op(attributes(1, 1, 0, 0), {70, 48, 1}, true);
  const TensorDesc x{DType::bf16, {2, 48, 21}, {}}, dy{DType::bf16, {2, 70, 21}, {}},
      dw{DType::f32, op.w_shape(), {}};
  bool widened = false;
  for (const KernelCandidate& c :
       CpuBackend().candidates({&op, {x, dy}, {dw}, {false, false}, {false}}))
    widened |= c.name.starts_with("widened") && c.refusal.empty();
  EXPECT_TRUE(widened);
}

TEST(CpuConv, ATransposedOneWithBiasRefusesPaddedChannels) {
  const ops::ConvTranspose op(attributes(2, 1, 1, 1), true);
  const TensorDesc x{DType::f32, {2, 16, 6, 6}, {}}, w{DType::f32, {16, 17, 3, 3}, {}},
      bias{DType::f32, {17}, {}}, y{DType::f32, {2, 17, 6, 6}, Layout::blocked_channels(16)};
  bool refused_for_it = false;
  for (const KernelCandidate& c :
       CpuBackend().candidates({&op, {x, w, bias}, {y}, {false, true, false}, {false}})) {
    EXPECT_EQ(c.refusal.empty(), c.name == "reference") << c.name;
    refused_for_it |= c.refusal.starts_with("no bias can be added over channels");
  }
  EXPECT_TRUE(refused_for_it) << "no kernel could have added the bias wrongly";
}

/// The last layer of DeepCAM: plain logits of three classes from channels last.
TEST(CpuConv, PlainLogitsFromChannelsLastNeedNoReferenceLoops) {
  const Layout last = Layout::channels_last(4);
  const TensorDesc wide{DType::f32, {2, 32, 12, 8}, last}, logits{DType::f32, {2, 3, 24, 16}, {}},
      w{DType::f32, {32, 3, 3, 3}, {}};
  const ops::ConvTranspose transposed(attributes(2, 2, 1, 1), false, {1, 1, 0});
  const ops::Conv pointwise(attributes(2, 1, 0, 0), false);
  const auto fast = [](const KernelRequest& request) {
    return std::ranges::any_of(CpuBackend().candidates(request), [](const KernelCandidate& c) {
      return c.refusal.empty() && c.speed == KernelSpeed::fast;
    });
  };
  EXPECT_TRUE(fast({&transposed, {wide, w}, {logits}, {false, true}, {false}}));
  EXPECT_TRUE(fast({&pointwise,
                    {wide, {DType::f32, {3, 32, 1, 1}, {}}},
                    {{DType::f32, {2, 3, 12, 8}, {}}},
                    {false, true},
                    {false}}));
  for (const KernelCandidate& c :
       CpuBackend().candidates({&transposed, {wide, w}, {logits}, {false, true}, {false}}))
    EXPECT_EQ(c.speed != KernelSpeed::fast,
              c.name.starts_with("onednn:ref") || c.name == "reference")
        << c.name;
}

/// Runs every accepted kernel whose result is transposed; returns their number.
int expect_turned_match(const KernelRequest& r) {
  testing::TiledRun how{{2, 1}, {}, {true}};
  std::vector<Values> in;
  for (const TensorDesc& d : r.in) {
    how.batched_in.push_back(in.empty());
    const int64_t tiles = in.empty() ? 3 : 1;
    in.push_back(testing::rounded(testing::random_values(tiles * d.elements(), 11 + in.size()),
                                  in.size() < 2 ? r.in[0].dtype : DType::f32));
  }
  const std::vector<KernelCandidate> all = CpuBackend().candidates(r);
  const auto reference = std::ranges::find(all, "reference", &KernelCandidate::name);
  const Values want = run_tiled(*reference, in, how)[0];
  int accepted = 0;
  for (const KernelCandidate& c : all) {
    if (!c.refusal.empty() || !c.name.ends_with(", turned")) continue;
    ++accepted;
    expect_close(run_tiled(c, in, how)[0], {want.begin(), want.end()}, c.out[0].dtype, Adds::twice,
                 fmt::format("{} {} out {}", r.op->name(), c.name, c.out[0].to_string()));
  }
  return accepted;
}

TEST(CpuConv, TurnedResultsAreThoseOfTheReference) {
  const Layout last = Layout::channels_last(4);
  for (const DType type : {DType::f32, DType::bf16}) {
    SCOPED_TRACE(name_of(type));
    const auto plain = [&](const Shape& shape) { return TensorDesc{type, shape, {}}; };
    const TensorDesc wide{type, {2, 32, 6, 8}, last}, three{type, {2, 3, 6, 8}, last};
    const TensorDesc bias{DType::f32, {3}, {}}, w{DType::f32, {3, 32, 3, 3}, {}},
        turned_w{DType::f32, {32, 3, 3, 3}, {}};
    const ops::Conv conv(attributes(2, 1, 1, 1), true, ops::ActivationAttributes{});
    const ops::ConvBackwardData data(attributes(2, 1, 1, 1), {2, 32, 6, 8});
    const ops::ConvTranspose transposed(attributes(2, 2, 1, 1), true, {1, 1, 0});
    const std::vector<bool> free{false, true, false}, fixed{false};
    // On other processors bf16 has reference loops only.
    const int least = type == DType::f32 || TUTTI_AVX512 ? 1 : 0;
    EXPECT_GE(expect_turned_match({&conv, {wide, w, bias}, {plain({2, 3, 6, 8})}, free, fixed}),
              least);
    EXPECT_GE(
        expect_turned_match({&data, {three, w}, {plain({2, 32, 6, 8})}, {false, true}, fixed}),
        least);
    EXPECT_GE(expect_turned_match(
                  {&transposed, {wide, turned_w, bias}, {plain({2, 3, 12, 16})}, free, fixed}),
              least);
    if (HasFatalFailure()) return;
  }
}

TEST(CpuConv, ReferenceLoopsOnlyWhereNothingElseExists) {
  const Problem p(conv_cases()[0], 2);
  const TensorDesc x{DType::f32, p.x_shape(2), Layout::blocked_channels(kRegister)},
      y{DType::f32, p.y_shape(2), Layout::blocked_channels(kRegister)};
  const ops::Conv forward(p.c.a, false);
  bool slow = false;
  for (const auto& c : CpuBackend().candidates(
           {&forward, {x, {DType::f32, p.w_shape(), {}}}, {y}, {false, true}, {false}}))
    if (c.name.starts_with("onednn:ref")) {
      slow = true;
      EXPECT_FALSE(c.refusal.empty());
    }
  EXPECT_TRUE(slow);
}

}  // namespace
}  // namespace tutti::backend
