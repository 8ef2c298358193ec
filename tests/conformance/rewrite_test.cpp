// Tests that graphs rewritten for training compute the same as before.

#include <gtest/gtest.h>

#include "gradient_check.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/fusion/fuse.h"

namespace tutti {
namespace {

/// Builds conv -> bn -> relu -> conv -> bn -> add(x) -> relu, twice, without fused ops.
std::vector<Value> residual_blocks(Graph& g) {
  Value x = variable(g, "x", {4, 4, 3});
  for (const std::string block : {"block0", "block1"}) {
    Value y =
        conv(g, block + ".conv1", x, {.out_channels = 4, .kernel = in_all(3), .pad = in_all(1)});
    y = relu(g, block + ".relu1", batch_norm(g, block + ".bn1", y, Mode::train));
    y = conv(g, block + ".conv2", y, {.out_channels = 4, .kernel = in_all(3), .pad = in_all(1)});
    y = batch_norm(g, block + ".bn2", y, Mode::train);
    x = relu(g, block + ".relu2", add(g, block + ".add", y, x));
  }
  x = relu(g, "relu", conv(g, "last", x, {.out_channels = 2, .bias = true}));
  return {squared_error(g, x)};
}

int count(const Graph& graph, std::string_view op) {
  return static_cast<int>(std::ranges::count_if(
      graph.nodes(), [&](const Node& node) { return node.op->name() == op; }));
}

TEST(Rewrite, KeepsLossAndGradients) {
  Graph plain;
  std::vector<Value> losses = residual_blocks(plain);
  plain.mark_output(losses[0]);
  Rewritten fused = fuse_forward(plain);
  EXPECT_EQ(count(plain, "activation"), 5);
  EXPECT_EQ(count(fused.graph, "activation"), 0);
  EXPECT_EQ(count(fused.graph, "add"), 0);
  EXPECT_EQ(fused.graph.outputs().size(), 1u);
  const std::vector<Value> fused_losses{fused.of[static_cast<size_t>(losses[0].id)]};
  differentiate(plain, losses);
  differentiate(fused.graph, fused_losses);
  EXPECT_EQ(count(fused.graph, "add"), 2);  // the first block's input and its result are read twice
  const Rewritten folded = fold_residual_sums(fused.graph);
  EXPECT_EQ(count(folded.graph, "add"), 1);  // the input is not the result of a batch norm
  EXPECT_EQ(folded.graph.nodes().size() + 1, fused.graph.nodes().size());

  const ReferenceBackend backend;
  Interpreter before(plain, backend), after(folded.graph, backend);
  bind(plain, before);
  bind(folded.graph, after);
  before.run();
  after.run();
  EXPECT_NEAR(before[losses[0]][0], after[folded.graph.outputs()[0]][0], 1e-5);
  const std::vector<Value> gradients = plain.with_role(Role::gradient);
  EXPECT_EQ(gradients.size(), folded.graph.with_role(Role::gradient).size());
  for (const Value g : gradients) {
    const Value parameter = folded.graph.find(plain[plain[g].of].name);
    ASSERT_TRUE(parameter.valid()) << plain[plain[g].of].name;
    for (const Value other : folded.graph.with_role(Role::gradient)) {
      if (folded.graph[other].of != parameter) continue;
      for (size_t i = 0; i < before[g].size(); ++i)
        ASSERT_NEAR(before[g][i], after[other][i], 1e-5) << folded.graph[parameter].name;
    }
  }
}

TEST(Rewrite, FusesEveryActivationWhoseGradientNeedsTheResultAlone) {
  for (const ActivationKind kind : activation_kinds()) {
    Graph g;
    const Value y = conv(g, "conv", variable(g, "x", {2, 3, 3}), {.out_channels = 2, .bias = true});
    squared_error(g, activation(g, "act", y, kind, 0.3f));
    const Graph fused = fuse_forward(g).graph;
    EXPECT_EQ(count(fused, "activation"), kind >= ActivationKind::gelu ? 1 : 0) << name_of(kind);
    if (kind != ActivationKind::leaky_relu) continue;
    EXPECT_NE(fused.to_string().find("bias leaky_relu slope 0.3"), std::string::npos);
  }
}

TEST(Rewrite, LeavesWhatOthersRead) {
  Graph g;
  const Value x = variable(g, "x", {2, 3, 3});
  const Value y = conv(g, "conv", x, {.out_channels = 2});
  const Value z = relu(g, "relu", y);
  squared_error(g, add(g, "sum", y, z));
  EXPECT_EQ(count(fuse_forward(g).graph, "activation"), 1);
  Graph shown;
  const Value w = conv(shown, "conv", variable(shown, "x", {2, 3, 3}), {.out_channels = 2});
  shown.mark_output(w);
  squared_error(shown, relu(shown, "relu", w));
  EXPECT_EQ(count(fuse_forward(shown).graph, "activation"), 1);
}

/// Computes the gradient of the weights of a convolution with padding, for a team of two.
bool shared(const Shape& sample, int64_t outputs, int64_t taps, int64_t stride = 1) {
  Graph g;
  const Value y = conv(g, "conv", variable(g, "x", sample),
                       {.out_channels = outputs,
                        .kernel = in_all(taps),
                        .stride = in_all(stride),
                        .pad = in_all(taps / 2)});
  differentiate(g, std::vector{squared_error(g, y)});
  const Graph rewritten = share_in_team(g, 2).graph;
  return std::ranges::any_of(rewritten.nodes(), [](const Node& node) {
    const auto* op = dynamic_cast<const ConvBackwardWeights*>(node.op.get());
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
