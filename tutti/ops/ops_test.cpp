// Tests shape rules: the types that they infer, and that errors name what was wrong.

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/ops/builder.h"
#include "tutti/ops/clip.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/exchange.h"
#include "tutti/ops/norm_update.h"
#include "tutti/ops/resize.h"
#include "tutti/ops/rows.h"

namespace tutti::ops {
namespace {

/// Expects that the call throws a ConfigError whose message has `text` in it.
#define EXPECT_REFUSED(call, text) \
  EXPECT_TRUE(throws<ConfigError>({text}, [&] { call; })) << "accepted: " << (text)

class Ops : public testing::Test {
 protected:
  Value image(const Shape& shape, DType dtype = DType::f32) {
    return g.input("x" + std::to_string(++inputs), {dtype, shape, {}});
  }
  Graph g;
  int inputs = 0;
};

TEST_F(Ops, ConvolutionShapesAndParameters) {
  const Value y = conv(g, "stem", image({8, 3, 224, 224}, DType::bf16),
                       {.out_channels = 64,
                        .kernel = in_all(7),
                        .stride = in_all(2),
                        .pad = in_all(3),
                        .bias = true});
  EXPECT_EQ(g.shape(y), (Shape{8, 64, 112, 112}));
  EXPECT_EQ(g.type(y).desc.dtype, DType::bf16);
  EXPECT_EQ(g.shape("stem.weight"), (Shape{64, 3, 7, 7}));
  EXPECT_EQ(g.shape("stem.bias"), Shape{64});
  EXPECT_EQ(g[g.find("stem.bias")].init.fan, 3 * 49);
  const Node& node = g.nodes().back();
  const std::vector<ValueType> in{g.type(node.in[0]), g.type(node.in[1])}, out{g.type(y)};
  EXPECT_DOUBLE_EQ(node.op->flop(in, out), 2.0 * 8 * 64 * 112 * 112 * 3 * 49);
  EXPECT_EQ(node.op->attributes(), "stride 2x2 pad 3x3 bias");

  EXPECT_EQ(
      g.shape(conv(g, "volume", image({2, 4, 9, 8, 7}),
                   {.out_channels = 6, .kernel = {3, 2, 1}, .stride = {2, 1, 1}, .groups = 2})),
      (Shape{2, 6, 4, 7, 7}));
  EXPECT_EQ(g.shape(conv_transpose(g, "up", image({2, 16, 5, 5}),
                                   {.out_channels = 8,
                                    .kernel = in_all(3),
                                    .stride = in_all(2),
                                    .pad = in_all(1),
                                    .output_pad = {1, 1, 0}})),
            (Shape{2, 8, 10, 10}));
  EXPECT_EQ(g.shape("up.weight"), (Shape{16, 8, 3, 3}));
}

TEST_F(Ops, ConvolutionRefusals) {
  EXPECT_REFUSED(conv(g, "c", image({2, 3, 4, 4}), {.out_channels = 8, .kernel = in_all(5)}),
                 "layer 'c': conv: a kernel reaching over 5 does not fit into extent 4");
  EXPECT_REFUSED(conv(g, "c", image({2, 3, 4, 4}), {.out_channels = 8, .groups = 2}),
                 "3 input and 8 output channels do not form 2 groups");
  const Value flat = image({2, 3});
  EXPECT_REFUSED(conv(g, "c", flat, {.out_channels = 8}), "is 3, and 2 to 4 axes are needed");
  EXPECT_REFUSED(conv(g, "c", image({2, 3, 4, 4}, DType::u8), {.out_channels = 8}), "u8");
  EXPECT_REFUSED(conv_output_shape({}, {2, 3, 8, 8}, {4, 5, 3, 3}),
                 "has 3 channels, w 4x5x3x3 with 1 groups takes 5");
}

TEST_F(Ops, BatchNormMakesStatisticsAndKeepsTheType) {
  const Value z =
      batch_norm(g, "bn", image({4, 8, 5, 5}, DType::bf16), Mode::train, {.relu = true});
  EXPECT_EQ(g.type(z).desc.dtype, DType::bf16);
  EXPECT_EQ(g[g.find("bn.running_var")].role, Role::statistic);
  EXPECT_EQ(g[g.find("bn.running_var")].init.kind, Init::Kind::ones);
  EXPECT_EQ(g.nodes().size(), 2u);
  batch_norm(g, "frozen", image({4, 8, 5, 5}), Mode::eval);
  EXPECT_EQ(g.nodes().back().op->name(), "batch_norm_inference");
  EXPECT_REFUSED(
      batch_norm(g, "b", image({4, 8, 5, 5}), Mode::train, {.residual = image({4, 8, 5, 4})}),
      "the shapes 4x8x5x5 and 4x8x5x4 differ");
}

TEST_F(Ops, PoolShapesAndRefusals) {
  EXPECT_EQ(
      g.shape(pool(
          g, "p", image({2, 3, 112, 112}),
          {.kernel = in_all(3), .stride = in_all(2), .pad_low = in_all(1), .pad_high = in_all(1)})),
      (Shape{2, 3, 56, 56}));
  EXPECT_EQ(g.shape(global_average_pool(g, "gap", image({2, 3, 4, 5}))), (Shape{2, 3}));
  EXPECT_REFUSED(pool(g, "p", image({2, 3, 8, 8}), {.kernel = in_all(2), .pad_low = in_all(2)}),
                 "padding must be less than the kernel");
  EXPECT_REFUSED(pool(g, "p", image({2, 3, 2, 2}), {.kernel = in_all(3)}),
                 "does not fit into x 2x3x2x2");
}

TEST_F(Ops, BroadcastFillsPositions) {
  const Value y = broadcast(g, "tiles", image({2, 3, 1, 1}, DType::bf16), {48, 72});
  EXPECT_EQ(g.shape(y), (Shape{2, 3, 48, 72}));
  EXPECT_EQ(g.type(y).desc.dtype, DType::bf16);
  EXPECT_REFUSED(broadcast(g, "b", image({2, 3, 1, 2}), {4, 4}), "x 2x3x1x2 needs one position");
  EXPECT_REFUSED(broadcast(g, "b", image({2, 3, 1, 1}), {4, 4, 4}), "as many spatial dimensions");
}

TEST_F(Ops, ResizeRepeatsAndSaysWhichRowsItNeeds) {
  const Value x = image({2, 3, 4, 5});
  EXPECT_EQ(g.shape(resize(g, "wide", x, {2, 3, 1})), (Shape{2, 3, 8, 15}));
  EXPECT_EQ(g.shape(resize(g, "line", image({2, 3, 7}), in_all(2))), (Shape{2, 3, 14}));
  EXPECT_EQ(g.shape(resize(g, "volume", image({1, 2, 2, 3, 4}), in_all(2))),
            (Shape{1, 2, 4, 6, 8}));
  EXPECT_REFUSED(resize(g, "b", image({2, 3}), in_all(2)), "at least 3 dimensions");
  EXPECT_REFUSED(resize(g, "b", x, {0, 1, 1}), "between 1 and 64");

  const Resize op(ResizeAttributes{.factor = {3, 1, 1}});
  const ValueType type = g.type(x);
  for (const Rows out : {Rows{0, 12}, Rows{4, 7}, Rows{-1, 2}, Rows{11, 14}}) {
    const Reach reach = *op.reach({&type, 1}, 0, out);
    const Rows in = reach.in[0].rows;
    const ResizeAttributes rows = dynamic_cast<const Resize&>(*reach.op).resize();
    for (int64_t r = out.first; r < out.last; ++r)
      EXPECT_EQ(in.first + (rows.first[0] + r - out.first) / 3, (r + 3) / 3 - 1) << r;
    EXPECT_EQ(resize_output_shape(rows, Shape{2, 3, in.count(), 5})[2], out.count());
  }
}

TEST_F(Ops, ScaleNeedsNumbersThatCanBeScaled) {
  scale(g, "wide", image({2, 3}), 1.2f);
  EXPECT_EQ(g.nodes().back().op->attributes(), "factor 1.2");
  EXPECT_REFUSED(scale(g, "b", image({2, 3}, DType::i32), 2), "needs floating-point numbers");
}

TEST_F(Ops, SeparableConvolutionIsDepthwiseThenPointwise) {
  const Value y = separable_conv(g, "sep", image({2, 6, 9, 8}),
                                 {.out_channels = 10,
                                  .kernel = in_all(3),
                                  .stride = in_all(2),
                                  .dilation = in_all(2),
                                  .pad = in_all(2),
                                  .bias = true});
  EXPECT_EQ(g.shape(y), (Shape{2, 10, 5, 4}));
  EXPECT_EQ(g.shape("sep.conv1.weight"), (Shape{6, 1, 3, 3}));
  EXPECT_EQ(g.shape("sep.pointwise.weight"), (Shape{10, 6, 1, 1}));
  EXPECT_FALSE(g.find("sep.conv1.bias").valid());
  EXPECT_TRUE(g.find("sep.pointwise.bias").valid());
  EXPECT_REFUSED(separable_conv(g, "s", image({2, 6, 9, 8}), {.out_channels = 4, .groups = 2}),
                 "with 2 groups");
}

TEST_F(Ops, BiasesStartAsTheLayerSays) {
  conv(g, "torch", image({2, 3, 8, 8}), {.out_channels = 4, .kernel = in_all(3), .bias = true});
  EXPECT_EQ(g[g.find("torch.bias")].init.kind, Init::Kind::uniform_fan_in);
  EXPECT_EQ(g[g.find("torch.bias")].init.fan, 27);
  conv(g, "keras", image({2, 3, 8, 8}),
       {.out_channels = 4,
        .kernel = in_all(3),
        .bias = true,
        .init = Init::Kind::glorot_uniform,
        .bias_init = Init::Kind::zeros});
  EXPECT_EQ(g[g.find("keras.weight")].init.kind, Init::Kind::glorot_uniform);
  EXPECT_EQ(g[g.find("keras.bias")].init.kind, Init::Kind::zeros);
  dense(g, "fc", image({2, 3}), {.outputs = 4, .bias_init = Init::Kind::zeros});
  EXPECT_EQ(g[g.find("fc.bias")].init.kind, Init::Kind::zeros);
  dense(g, "prior", image({2, 3}),
        {.outputs = 4,
         .init = Init::Kind::normal,
         .init_value = 0.01,
         .bias_init = Init::Kind::constant,
         .bias_value = -4.6});
  EXPECT_EQ(g[g.find("prior.weight")].init.value, 0.01);
  EXPECT_EQ(g[g.find("prior.bias")].init.value, -4.6);
  EXPECT_EQ(g[g.find("prior.bias")].init.fan, 0);
  EXPECT_REFUSED(dense(g, "d", image({2, 3}), {.outputs = 4, .bias_init = Init::Kind::ones}),
                 "a bias starts with zeros");
}

TEST_F(Ops, DenseFlattensAndChoosesItsType) {
  const Value y = dense(g, "fc", image({4, 8, 2, 3}, DType::bf16), {.outputs = 10});
  EXPECT_EQ(g.shape("fc.weight"), (Shape{10, 48}));
  EXPECT_EQ(g.type(y).desc.dtype, DType::f32);
  EXPECT_EQ(
      g.type(dense(g, "hidden", image({4, 8}), {.outputs = 2, .bias = false, .dtype = DType::bf16}))
          .desc.dtype,
      DType::bf16);
  EXPECT_FALSE(g.find("hidden.bias").valid());
}

TEST_F(Ops, ShapeOps) {
  const Value x = image({2, 6, 5});
  EXPECT_EQ(g.shape(reshape(g, "r", x, {3, 10})), (Shape{2, 3, 10}));
  EXPECT_EQ(g.shape(slice(g, "s", x, {{1, 6, 2}, {0, 5, 4}})), (Shape{2, 3, 2}));
  EXPECT_EQ(g.shape(pad(g, "p", x, {1, 0}, {0, 2})), (Shape{2, 7, 7}));
  EXPECT_EQ(g.shape(concat(g, "c", {x, image({2, 1, 5})}, 1)), (Shape{2, 7, 5}));
  EXPECT_REFUSED(reshape(g, "r", x, {7}), "has 30 elements, 7 has 7");
  EXPECT_REFUSED(slice(g, "s", x, {{1, 7, 1}, {0, 5, 1}}),
                 "range 1:7:1 does not lie in dimension 1 of x 2x6x5");
  EXPECT_REFUSED(slice(g, "s", x, {{0, 6, 1}}), "1 ranges for x 2x6x5");
  EXPECT_REFUSED(pad(g, "p", x, {-1, 0}, {0, 0}), "use slice to cut");
  EXPECT_REFUSED(concat(g, "c", {x, image({2, 1, 4})}, 1), "differ in more than axis 1");
  EXPECT_REFUSED(concat(g, "c", {x, x}, 0), "axis 0");
}

TEST_F(Ops, LossesAreEndsAndCheckLabels) {
  const Value x = image({4, 10}), labels = image({4}, DType::i32);
  const Value loss = softmax_cross_entropy(g, "loss", x, labels);
  EXPECT_EQ(g.shape(loss).rank(), 0);
  EXPECT_FALSE(g.type(loss).batched);
  EXPECT_REFUSED(softmax_cross_entropy(g, "l", x, image({4, 10}, DType::i32)),
                 "need i32 labels of their shape without dimension 1");
  EXPECT_REFUSED(softmax_cross_entropy(g, "l", x, image({4})), "i32 labels");
  EXPECT_REFUSED(softmax_cross_entropy(g, "l", x, labels,
                                       {.label_smoothing = 0, .class_weights = {1, 2}, .scale = 1}),
                 "2 class weights for 10 classes");
  Graph sums;
  const Value a = dense(sums, "a", sums.input("x", {DType::f32, {4, 2}, {}}), {.outputs = 3});
  const Value t = sums.input("t", {DType::f32, {4, 3}, {}});
  const Value both =
      add(sums, "both", pointwise_loss(sums, "l1", a, t, {}), pointwise_loss(sums, "l2", a, t, {}));
  EXPECT_REFUSED(differentiate(sums, std::span(&both, 1)),
                 "'both' cannot be a loss; give differentiate the losses one by one");
}

TEST_F(Ops, TargetsAreNotDifferentiated) {
  const Value x = image({4, 2});
  const Value a = dense(g, "a", x, {.outputs = 3}), b = dense(g, "b", x, {.outputs = 3});
  const Value loss = pointwise_loss(g, "loss", a, b, {});
  EXPECT_REFUSED(differentiate(g, std::span(&loss, 1)),
                 "the target of 'loss' depends on parameters");
}

TEST_F(Ops, DropoutIsAbsentInEvaluationAndDiffersByName) {
  const Value x = image({4, 2});
  EXPECT_EQ(dropout(g, "d", x, 0.5f, Mode::eval), x);
  EXPECT_EQ(dropout(g, "d", x, 0, Mode::train), x);
  dropout(g, "d1", x, 0.5f, Mode::train);
  const std::string first = g.nodes().back().op->attributes();
  dropout(g, "d2", x, 0.5f, Mode::train);
  EXPECT_NE(first, g.nodes().back().op->attributes());
  EXPECT_REFUSED(dropout(g, "d", x, 1, Mode::train), "probability 1 is not in [0, 1)");
}

TEST_F(Ops, UpdatesMutateWeightsAndStatesAlone) {
  const AdamUpdate adam{{}};
  const std::vector<bool> mutated{false, false, true, false, true, true, true, false, true, true};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(adam.mutates(i), mutated[static_cast<size_t>(i)]) << i;
  const Value lr = g.scalar("lr"), scale = g.scalar("scale"), w = g.parameter("w", {3}, {}),
              v = g.parameter("v", {4}, {});
  EXPECT_REFUSED(g.append("u", std::make_shared<SgdUpdate>(SgdAttributes{}), {lr, scale, w}),
                 "3 inputs given");
  EXPECT_REFUSED(g.append("u", std::make_shared<SgdUpdate>(SgdAttributes{}), {lr, scale, w, v}),
                 "the parameter is f32 3");
  EXPECT_TRUE(
      g.append("u", std::make_shared<SgdUpdate>(SgdAttributes{}), {lr, scale, w, w}).empty());
  EXPECT_REFUSED(g.append("e", std::make_shared<AllReduceGradients>(0), {image({4, 2})}),
                 "is not a gradient");
}

TEST_F(Ops, NormsTravelAsBlockSumsBetweenTwoOps) {
  const Value lr = g.scalar("lr"), scale = g.scalar("scale"), w = g.parameter("w", {3}, {}),
              v = g.parameter("v", {2 * kSumBlock + 1}, {});
  const Value sums = g.append1("n", std::make_shared<ParameterNorms>(), {lr, scale, w, w, v, v});
  EXPECT_EQ(g.shape(sums), (Shape{1 + 3, 2}));
  EXPECT_TRUE(g.append("u", std::make_shared<LarsUpdate>(LarsAttributes{}),
                       {lr, scale, sums, w, w, w, v, v, v})
                  .empty());
  EXPECT_REFUSED(
      g.append("u", std::make_shared<LarsUpdate>(LarsAttributes{}), {lr, scale, sums, w, w, w}),
      "the block sums are f32 4x2");
  EXPECT_TRUE(g.append("x", std::make_shared<AllReduceNorms>(0), {sums}).empty());
  EXPECT_REFUSED(g.append("x", std::make_shared<AllReduceNorms>(0), {sums, sums}),
                 "one array of block sums");
  // Each op of LAMB changes its own inputs, of w, g, m, v after the scalars (in the second op after
  // the sums, too).
  for (int i = 0; i < 6; ++i) EXPECT_EQ(LambMoments({}).mutates(i), i >= 4) << i;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(LambUpdate({}).mutates(i), i == 3) << i;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(ParameterNorms().mutates(i)) << i;
  EXPECT_TRUE(LarsUpdate({}).mutates(3) && !LarsUpdate({}).mutates(4) && LarsUpdate({}).mutates(5));
}

/// Slabs in the middle of a part read no rows of other parts.
TEST_F(Ops, RowsOfOthersAreReadAtTheEdges) {
  const GatherRows gather({.dim = 2,
                           .slabs = 2,
                           .windows = {{-1, 5}, {3, 9}, {7, 13}, {11, 17}},
                           .others = {{-1, 0}, {16, 17}}});
  const std::vector<std::vector<bool>> want{{true, false, false, false, true},    // above
                                            {false, false, false, true, false}};  // below
  for (size_t side = 0; side < want.size(); ++side)
    for (size_t s = 0; s < want[side].size(); ++s)  // the last belongs to another sample
      EXPECT_EQ(gather.reads(1 + side, static_cast<int64_t>(s)), want[side][s]) << side << " " << s;
  EXPECT_TRUE(gather.reads(0, 1));
  const AddRows sum({.dim = 2,
                     .slabs = 4,
                     .rows = {0, 16},
                     .windows = {{{-1, 5}, {3, 9}, {7, 13}, {11, 17}}, {{15, 16}}}});
  for (int64_t s = 0; s < 8; ++s) EXPECT_EQ(sum.reads(1, s), s % 4 == 3) << s;
  EXPECT_TRUE(sum.reads(0, 3));
}

TEST_F(Ops, ClippingAddsTheBlockSumsOfAllParameters) {
  const Value lr = g.scalar("lr"), scale = g.scalar("scale"), w = g.parameter("w", {3}, {}),
              v = g.parameter("v", {2 * kSumBlock + 1}, {});
  const auto squares = [&](std::vector<Value> in) {
    in.insert(in.begin(), {lr, scale});
    return g.append1("s", std::make_shared<GradientSquares>(), in);
  };
  const Value both = squares({w, w, v, v}), one = squares({w, w});
  EXPECT_EQ(g.shape(both), (Shape{1 + 3, 1}));
  const auto clip = std::make_shared<ClipScale>(
      ClipScale::Attributes{.limit = 1, .parameters = {2, 1}, .order = {2, 1, 0}});
  const std::vector<Value> out = g.append("c", clip, {scale, both, one, w, v, w});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(g.shape(out[0]), Shape{});
  EXPECT_REFUSED(g.append("c", clip, {scale, both, one, w, w, w}),
                 "block sums are f32 4x1, the parameters have 2 blocks");
  EXPECT_REFUSED(g.append("c", clip, {scale, both, one, w, v}), "5 inputs given, 6 expected");
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(GradientSquares().mutates(i)) << i;
}

/// A parameter may be padded in memory, and blocks cover the padding, too.
TEST_F(Ops, BlocksOfNormsFollowTheLayout) {
  const ValueType scalar{{DType::f32, {}, {}}, false};
  ValueType w{{DType::f32, Shape{kSumBlock / 16, 1, 1, 1}, {}}, false};
  EXPECT_EQ(ParameterNorms().infer(std::vector{scalar, scalar, w, w})[0].desc.shape, (Shape{1, 2}));
  w.desc.layout = Layout::blocked_channels(32);
  EXPECT_EQ(ParameterNorms().infer(std::vector{scalar, scalar, w, w})[0].desc.shape, (Shape{2, 2}));
}

}  // namespace
}  // namespace tutti::ops
