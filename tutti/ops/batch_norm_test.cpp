#include "tutti/ops/batch_norm.h"

#include <gtest/gtest.h>

#include <array>

#include "tutti/ops/builder.h"

namespace tutti::ops {
namespace {

/// Returns the ops of a batch norm's gradient, in their order.
std::vector<std::string> gradient_ops(const NormStatistics& statistics) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 3}, {}});
  const Value y = reshape(g, "y", dense(g, "fc", x, {.outputs = 8}), {2, 4});
  const Value z = batch_norm(g, "bn", y, Mode::train, {.statistics = statistics});
  const size_t forward = g.nodes().size() + 1;
  const Value loss = pointwise_loss(g, "loss", z, g.input("target", g.type(z).desc),
                                    {.kind = PointwiseLossKind::mse});
  differentiate(g, std::array{loss});
  std::vector<std::string> ops;
  for (size_t i = forward; i < g.nodes().size(); ++i)
    if (g.nodes()[i].name.starts_with("bn")) ops.emplace_back(g.nodes()[i].op->name());
  return ops;
}

// The factor needs no sum over the batch, and no sum is multiplied by 0, which could give NaN.
TEST(BatchNorm, TheGradientThroughConstantStatisticsIsAFactor) {
  const std::vector<std::string> by_batch{"batch_norm_grad_reduce", "batch_norm_grad_apply"},
      constant{"batch_norm_grad_reduce", "batch_norm_grad_scale"};
  EXPECT_EQ(gradient_ops({}), by_batch);
  EXPECT_EQ(gradient_ops({.running = true}), constant);
  EXPECT_EQ(gradient_ops({.momentum = 0, .running = true}), constant);
}

TEST(BatchNorm, AFrozenBatchNormTakesNoStatistics) {
  Graph g;
  batch_norm(g, "bn", g.input("x", {DType::f32, {4, 8, 5, 5}, {}}), Mode::train,
             {.statistics = {.epsilon = 0.5f, .momentum = 0, .running = true}});
  ASSERT_EQ(g.nodes().size(), 1u);
  EXPECT_EQ(g.nodes()[0].op->name(), "batch_norm_inference");
  EXPECT_EQ(g.nodes()[0].op->attributes(), "epsilon 0.5");
  EXPECT_EQ(g.with_role(Role::statistic).size(), 2u);
}

}  // namespace
}  // namespace tutti::ops
