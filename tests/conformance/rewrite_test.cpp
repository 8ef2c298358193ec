// Tests that graphs rewritten for training compute the same as before.

#include <gtest/gtest.h>

#include "gradient_check.h"
#include "tutti/base/expect_text.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/fusion/fuse.h"

namespace tutti {
namespace {

using graph::Graph;
using graph::Value;

/// Builds conv -> bn -> relu -> conv -> bn -> add(x) -> relu, twice, without fused ops.
std::vector<Value> residual_blocks(Graph& g) {
  Value x = variable(g, "x", {4, 4, 3});
  for (const std::string block : {"block0", "block1"}) {
    Value y = ops::conv(g, block + ".conv1", x,
                        {.out_channels = 4, .kernel = ops::in_all(3), .pad = ops::in_all(1)});
    y = ops::relu(g, block + ".relu1", ops::batch_norm(g, block + ".bn1", y, ops::Mode::train));
    y = ops::conv(g, block + ".conv2", y,
                  {.out_channels = 4, .kernel = ops::in_all(3), .pad = ops::in_all(1)});
    y = ops::batch_norm(g, block + ".bn2", y, ops::Mode::train);
    x = ops::relu(g, block + ".relu2", ops::add(g, block + ".add", y, x));
  }
  x = ops::relu(g, "relu", ops::conv(g, "last", x, {.out_channels = 2, .bias = true}));
  return {squared_error(g, x)};
}

int count(const Graph& graph, std::string_view op) {
  return static_cast<int>(std::ranges::count_if(
      graph.nodes(), [&](const graph::Node& node) { return node.op->name() == op; }));
}

TEST(Rewrite, KeepsLossAndGradients) {
  Graph plain;
  std::vector<Value> losses = residual_blocks(plain);
  plain.mark_output(losses[0]);
  ops::Rewritten fused = ops::fuse_forward(plain);
  EXPECT_EQ(count(plain, "activation"), 5);
  EXPECT_EQ(count(fused.graph, "activation"), 0);
  EXPECT_EQ(count(fused.graph, "add"), 0);
  EXPECT_EQ(fused.graph.outputs().size(), 1u);
  const std::vector<Value> fused_losses{fused.of[static_cast<size_t>(losses[0].id)]};
  ops::differentiate(plain, losses);
  ops::differentiate(fused.graph, fused_losses);
  EXPECT_EQ(count(fused.graph, "add"), 2);  // the first block's input and its result are read twice
  const ops::Rewritten folded = ops::fold_residual_sums(fused.graph);
  EXPECT_EQ(count(folded.graph, "add"), 1);  // the input is not the result of a batch norm
  EXPECT_EQ(folded.graph.nodes().size() + 1, fused.graph.nodes().size());

  const backend::ReferenceBackend backend;
  Interpreter before(plain, backend), after(folded.graph, backend);
  bind(plain, before);
  bind(folded.graph, after);
  before.run();
  after.run();
  EXPECT_NEAR(before[losses[0]][0], after[folded.graph.outputs()[0]][0], 1e-5);
  const std::vector<Value> gradients = plain.with_role(graph::Role::gradient);
  EXPECT_EQ(gradients.size(), folded.graph.with_role(graph::Role::gradient).size());
  for (const Value g : gradients) {
    const Value parameter = folded.graph.find(plain[plain[g].of].name);
    ASSERT_TRUE(parameter.valid()) << plain[plain[g].of].name;
    for (const Value other : folded.graph.with_role(graph::Role::gradient)) {
      if (folded.graph[other].of != parameter) continue;
      for (size_t i = 0; i < before[g].size(); ++i)
        ASSERT_NEAR(before[g][i], after[other][i], 1e-5) << folded.graph[parameter].name;
    }
  }
}

/// A shortcut of ResNets between stages; the other two slices have another reader, or a pad of
/// ones.
std::vector<Value> shortcut(Graph& g) {
  const Value x = variable(g, "x", {3, 6, 5});
  const std::vector<ops::SliceRange> ranges{{1, 3, 1}, {0, 6, 2}, {1, 5, 3}};
  const Value even = ops::slice(g, "even", x, ranges), read = ops::slice(g, "read", x, ranges);
  const Value a = ops::pad(g, "a", even, {2, 0, 0}, {1, 0, 0}),
              b = ops::pad(g, "b", read, {2, 0, 0}, {1, 0, 0}),
              c = ops::pad(g, "c", ops::slice(g, "ones", x, ranges), {2, 0, 0}, {1, 0, 0}, 1);
  return {squared_error(g, ops::add(g, "all", ops::add(g, "sum", a, b), c)),
          ops::pointwise_loss(g, "read.loss", read,
                              g.input("read.target", {DType::f32, g.shape(read), {}}),
                              {.kind = ops::PointwiseLossKind::mse})};
}

TEST(Rewrite, JoinsMovesThatNobodyElseReads) {
  Graph plain;
  const std::vector<Value> losses = shortcut(plain);
  for (const Value loss : losses) plain.mark_output(loss);
  ops::differentiate(plain, losses);
  const ops::Rewritten joined = ops::join_moves(plain);
  EXPECT_EQ(count(joined.graph, "pad"), 2);
  EXPECT_EQ(count(joined.graph, "slice"), 3);  // one is a gradient of those pads'
  EXPECT_EQ(count(joined.graph, "slice_grad"), 1);
  EXPECT_EQ(count(joined.graph, "move_box"), 3);
  const backend::ReferenceBackend backend;
  Interpreter before(plain, backend), after(joined.graph, backend);
  bind(plain, before);
  bind(joined.graph, after);
  before.run();
  after.run();
  for (const Value v : plain.outputs())
    EXPECT_EQ(before[v], after[joined.of[static_cast<size_t>(v.id)]]);
  for (const Value g : plain.with_role(graph::Role::gradient))
    EXPECT_EQ(before[g], after[joined.of[static_cast<size_t>(g.id)]]) << plain[g].name;
}

TEST(Rewrite, FusesEveryActivationWhoseGradientNeedsTheResultAlone) {
  for (const ops::ActivationKind kind : ops::activation_kinds()) {
    Graph g;
    const Value y =
        ops::conv(g, "conv", variable(g, "x", {2, 3, 3}), {.out_channels = 2, .bias = true});
    squared_error(g, ops::activation(g, "act", y, kind, 0.3f));
    const Graph fused = ops::fuse_forward(g).graph;
    EXPECT_EQ(count(fused, "activation"), kind >= ops::ActivationKind::gelu ? 1 : 0)
        << name_of(kind);
    if (kind != ops::ActivationKind::leaky_relu) continue;
    EXPECT_TRUE(has_text(fused.to_string(), "bias leaky_relu slope 0.3"));
  }
}

TEST(Rewrite, LeavesWhatOthersRead) {
  Graph g;
  const Value x = variable(g, "x", {2, 3, 3});
  const Value y = ops::conv(g, "conv", x, {.out_channels = 2});
  const Value z = ops::relu(g, "relu", y);
  squared_error(g, ops::add(g, "sum", y, z));
  EXPECT_EQ(count(ops::fuse_forward(g).graph, "activation"), 1);
  Graph shown;
  const Value w = ops::conv(shown, "conv", variable(shown, "x", {2, 3, 3}), {.out_channels = 2});
  shown.mark_output(w);
  squared_error(shown, ops::relu(shown, "relu", w));
  EXPECT_EQ(count(ops::fuse_forward(shown).graph, "activation"), 1);
}

/// Computes the gradient of the weights of a convolution with padding, for a team of two.
bool shared(const Shape& sample, int64_t outputs, int64_t taps, int64_t stride = 1) {
  Graph g;
  const Value y = ops::conv(g, "conv", variable(g, "x", sample),
                            {.out_channels = outputs,
                             .kernel = ops::in_all(taps),
                             .stride = ops::in_all(stride),
                             .pad = ops::in_all(taps / 2)});
  ops::differentiate(g, std::vector{squared_error(g, y)});
  const Graph rewritten = ops::share_in_team(g, 2).graph;
  return std::ranges::any_of(rewritten.nodes(), [](const graph::Node& node) {
    const auto* op = dynamic_cast<const ops::ConvBackwardWeights*>(node.op.get());
    return op && op->whole();
  });
}

TEST(Rewrite, TheTeamSharesGradientsOfLargeWeights) {
  EXPECT_TRUE(shared({32, 2, 2, 2}, 32, 3));
  EXPECT_TRUE(shared({32, 3, 2}, 64, 3));
  EXPECT_FALSE(shared({32, 2, 2, 2}, 32, 3, 2)) << "no points at stride 2";
  EXPECT_FALSE(shared({32, 16, 16}, 32, 3)) << "more is read than the sums cost";
  EXPECT_FALSE(shared({8, 2, 2}, 32, 3)) << "few channels";
  EXPECT_TRUE(shared({32, 4}, 32, 1));
  EXPECT_FALSE(shared({32, 400}, 32, 1));
}

}  // namespace
}  // namespace tutti
