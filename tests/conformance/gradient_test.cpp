// Tests every gradient rule against finite differences.

#include <gtest/gtest.h>

#include "gradient_check.h"
#include "tutti/ops/broadcast.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/ops/group_norm.h"
#include "tutti/ops/interaction.h"
#include "tutti/ops/rank_sums.h"
#include "tutti/ops/resize.h"
#include "tutti/ops/sequence/lookup.h"
#include "tutti/ops/sequence/sequence.h"
#include "tutti/ops/sequence/token_head.h"
#include "tutti/ops/sequence/token_slice.h"

namespace tutti {
namespace {

using graph::Graph;
using graph::Value;

Value labels(Graph& graph, const Shape& shape) {
  return graph.input("labels", {DType::i32, shape, {}});
}

/// Returns the same graph with its nodes fused as for training.
Build fused(Build build) {
  return [build = std::move(build)](Graph& graph) {
    std::vector<Value> losses = build(graph);
    ops::Rewritten rewritten = ops::fuse_forward(graph);
    for (Value& loss : losses) loss = rewritten.of[static_cast<size_t>(loss.id)];
    graph = std::move(rewritten.graph);
    return losses;
  };
}

struct GradientCase {
  std::string name;
  Build build;
};

std::vector<GradientCase> cases() {
  std::vector<GradientCase> all;
  const auto add_case = [&](std::string name, Build build) {
    all.push_back({std::move(name), std::move(build)});
  };
  const auto add_loss = [&](std::string name, std::function<Value(Graph&)> f) {
    add_case(std::move(name), [=](Graph& g) { return std::vector<Value>{f(g)}; });
  };
  /// Adds a result, of which the loss is the squared error.
  const auto add_result = [&](std::string name, std::function<Value(Graph&)> f) {
    add_loss(std::move(name), [=](Graph& g) { return squared_error(g, f(g)); });
  };
  const auto add_map = [&](std::string name, const Shape& sample,
                           std::function<Value(Graph&, Value)> f) {
    add_case(std::move(name), through(sample, std::move(f)));
  };
  const auto add_fused = [&](std::string name, const Shape& sample,
                             std::function<Value(Graph&, Value)> f) {
    add_case(std::move(name), fused(through(sample, std::move(f))));
  };

  add_map("conv", {3, 5, 4}, [](Graph& g, Value x) {
    return ops::conv(
        g, "y", x,
        {.out_channels = 4, .kernel = ops::in_all(3), .pad = ops::in_all(1), .bias = true});
  });
  add_fused("conv_relu", {3, 5, 4}, [](Graph& g, Value x) {
    return ops::conv(g, "y", x,
                     {.out_channels = 4,
                      .kernel = ops::in_all(3),
                      .pad = ops::in_all(1),
                      .bias = true,
                      .activation = ops::ActivationAttributes{}});
  });
  add_fused("conv_leaky_relu", {3, 5, 4}, [](Graph& g, Value x) {
    return ops::conv(
        g, "y", x,
        {.out_channels = 4,
         .kernel = ops::in_all(2),
         .pad_high = ops::in_all(1),
         .bias = true,
         .activation = ops::ActivationAttributes{ops::ActivationKind::leaky_relu, 0.3f}});
  });
  add_fused("conv_tanh", {3, 5, 4}, [](Graph& g, Value x) {
    return ops::conv(g, "y", x,
                     {.out_channels = 4,
                      .kernel = ops::in_all(3),
                      .pad = ops::in_all(1),
                      .activation = ops::ActivationAttributes{ops::ActivationKind::tanh}});
  });
  add_map("conv_strided_grouped_dilated", {4, 7, 6}, [](Graph& g, Value x) {
    return ops::conv(g, "y", x,
                     {.out_channels = 6,
                      .kernel = {3, 2, 1},
                      .stride = {2, 1, 1},
                      .dilation = {1, 2, 1},
                      .pad = {1, 0, 0},
                      .pad_high = std::array<int64_t, 3>{2, 1, 0},
                      .groups = 2});
  });
  add_map("conv_3d", {2, 4, 3, 5}, [](Graph& g, Value x) {
    return ops::conv(
        g, "y", x, {.out_channels = 3, .kernel = {3, 2, 3}, .stride = {2, 1, 1}, .pad = {1, 0, 1}});
  });
  add_map("conv_transpose", {4, 3, 4}, [](Graph& g, Value x) {
    return ops::conv_transpose(g, "y", x,
                               {.out_channels = 6,
                                .kernel = {3, 2, 1},
                                .stride = {2, 2, 1},
                                .pad = {1, 0, 0},
                                .output_pad = {1, 0, 0},
                                .groups = 2,
                                .bias = true});
  });
  for (const bool relu : {false, true})
    for (const bool residual : {false, true})
      add_result(std::string("batch_norm") + (relu ? "_relu" : "") + (residual ? "_residual" : ""),
                 [=](Graph& g) {
                   const Value y = variable(g, "y", {3, 4, 2}),
                               other = residual ? variable(g, "other", {3, 4, 2}) : Value{};
                   return ops::batch_norm(g, "bn", y, ops::Mode::train,
                                          {.relu = relu, .residual = other});
                 });
  // With the smallest momentum the averages are nearly constant for finite differences, too.
  for (const auto& [name, momentum] : {std::pair("frozen", 0.f), std::pair("running", 1e-20f)})
    for (const bool residual : {false, true})
      add_result(fmt::format("batch_norm_{}{}", name, residual ? "_residual" : ""),
                 [=, momentum = momentum](Graph& g) {
                   const Value y = variable(g, "y", {3, 4, 2}),
                               other = residual ? variable(g, "other", {3, 4, 2}) : Value{};
                   const ops::NormStatistics averages{.momentum = momentum, .running = true};
                   return ops::batch_norm(
                       g, "bn", y, ops::Mode::train,
                       {.relu = true, .residual = other, .statistics = averages});
                 });
  add_map("dense", {2, 3, 2}, [](Graph& g, Value x) {
    return ops::dense(g, "y", x, {.outputs = 4, .bias = true, .dtype = {}});
  });
  for (const ops::ActivationKind kind : ops::activation_kinds())
    add_map(std::string("activation_") + std::string(name_of(kind)), {7},
            [kind](Graph& g, Value x) { return ops::activation(g, "y", x, kind, 0.2f); });
  add_map("max_pool", {2, 5, 6}, [](Graph& g, Value x) {
    return ops::pool(g, "y", x,
                     {.kind = ops::PoolKind::max,
                      .kernel = {3, 2, 1},
                      .stride = {2, 2, 1},
                      .pad_low = {1, 0, 0},
                      .pad_high = {1, 0, 0}});
  });
  add_fused("max_pool_of_relu", {2, 4, 6}, [](Graph& g, Value x) {
    const ops::ConvSpec spec{
        .out_channels = 3,
        .kernel = ops::in_all(3),
        .pad = ops::in_all(1),
        .bias = true,
        .activation = ops::ActivationAttributes{ops::ActivationKind::leaky_relu, 0.3f}};
    return ops::pool(
        g, "y", ops::conv(g, "conv", x, spec),
        {.kind = ops::PoolKind::max, .kernel = ops::in_all(2), .stride = ops::in_all(2)});
  });
  add_map("average_pool", {2, 5, 6}, [](Graph& g, Value x) {
    return ops::pool(g, "y", x,
                     {.kind = ops::PoolKind::average,
                      .kernel = {3, 2, 1},
                      .stride = {2, 1, 1},
                      .pad_low = {1, 1, 0},
                      .pad_high = {1, 0, 0},
                      .count_include_pad = false});
  });
  add_map("average_pool_3d", {2, 4, 3, 4}, [](Graph& g, Value x) {
    return ops::pool(g, "y", x,
                     {.kind = ops::PoolKind::average,
                      .kernel = ops::in_all(2),
                      .stride = ops::in_all(2),
                      .pad_low = ops::in_all(1),
                      .pad_high = ops::in_all(1)});
  });
  add_map("global_average_pool", {3, 2, 4},
          [](Graph& g, Value x) { return ops::global_average_pool(g, "y", x); });
  add_map("broadcast", {3, 1, 1}, [](Graph& g, Value x) {
    return ops::broadcast(g, "y", x, {4, 5});
  });
  add_map("broadcast_3d", {3, 1, 1, 1}, [](Graph& g, Value x) {
    return ops::broadcast(g, "y", x, {2, 3, 4});
  });
  add_map("resize", {3, 2, 4}, [](Graph& g, Value x) { return ops::resize(g, "y", x, {3, 2, 1}); });
  add_map("resize_1d", {3, 4},
          [](Graph& g, Value x) { return ops::resize(g, "y", x, ops::in_all(2)); });
  add_map("resize_3d", {2, 2, 1, 3}, [](Graph& g, Value x) {
    return ops::resize(g, "y", x, {2, 3, 1});
  });
  add_map("resize_of_some_rows", {2, 3, 2}, [](Graph& g, Value x) {
    return g.append1("y",
                     std::make_shared<ops::Resize>(ops::ResizeAttributes{
                         .factor = {2, 2, 1}, .first = {1, 0, 0}, .count = {4, 0, 0}}),
                     {x});
  });
  add_map("spatial_sum", {3, 2, 4}, [](Graph& g, Value x) {
    return g.append1("y", std::make_shared<ops::SpatialSum>(), {x});
  });
  add_map("power_spectrum_1d", {2, 5},
          [](Graph& g, Value x) { return ops::power_spectrum(g, "y", x); });
  add_map("power_spectrum", {1, 4, 3},
          [](Graph& g, Value x) { return ops::power_spectrum(g, "y", x); });
  add_map("power_spectrum_3d", {1, 4, 2, 3},
          [](Graph& g, Value x) { return ops::power_spectrum(g, "y", x); });
  for (const bool itself : {false, true})
    add_map(itself ? "interaction_itself" : "interaction", {12}, [itself](Graph& g, Value x) {
      return g.append1(
          "y", std::make_shared<ops::Interaction>(ops::InteractionAttributes{3, itself}), {x});
    });
  for (const ops::LayerNormKind kind : {ops::LayerNormKind::layer, ops::LayerNormKind::rms})
    add_map(fmt::format("{}_norm", name_of(kind)), {5, 4}, [kind](Graph& g, Value x) {
      return ops::layer_norm(g, "y", x, {.kind = kind, .epsilon = 1e-3f});
    });
  for (const int64_t groups : {1, 3, 6})
    add_map(fmt::format("group_norm_{}", groups), {6, 2, 3}, [groups](Graph& g, Value x) {
      return ops::group_norm(g, "y", x, {.groups = groups, .epsilon = 1e-3f});
    });
  add_map("linear", {5, 4},
          [](Graph& g, Value x) { return ops::linear(g, "y", x, {.outputs = 3}); });
  add_map("add_positions", {5, 4}, [](Graph& g, Value x) {
    return ops::add_positions(g, "y", x, 6, {graph::Init::Kind::zeros});
  });
  add_map("prepend_token", {5, 4}, [](Graph& g, Value x) {
    const Value token = g.parameter("token", {1, 1, 5}, {graph::Init::Kind::zeros}),
                rows = g.parameter("rows", {1, 5, 5}, {graph::Init::Kind::zeros});
    return ops::add_positions_by(g, "y", ops::prepend_token(g, "cls", x, token), rows);
  });
  add_map("add_sinusoids", {5, 4}, [](Graph& g, Value x) { return ops::add_sinusoids(g, "y", x); });
  add_map("rotate", {10, 5}, [](Graph& g, Value x) {
    return ops::rotate(g, "y", x, {.heads = 2, .width = 4, .base = 50});
  });
  add_result("rotate_given", [](Graph& g) {
    return g.append1("y",
                     std::make_shared<ops::Rotate>(ops::RotationAttributes{.heads = 1, .width = 6}),
                     {variable(g, "x", {6, 5}), labels(g, {kBatch, 5})});
  });
  add_result("swiglu", [](Graph& g) {
    return ops::swiglu(g, "y", variable(g, "g", {5, 2}), variable(g, "u", {5, 2}));
  });
  add_result("lookup_tied", [](Graph& g) {
    const Value w = g.parameter("w", {4, 3, 1}, {graph::Init::Kind::zeros});
    const Value x = ops::lookup(g, "x", w, labels(g, {kBatch, 5}), DType::f32);
    return ops::linear_by(g, "y", ops::activation(g, "t", x, ops::ActivationKind::tanh), w);
  });
  for (const auto& [name, a] : std::vector<std::pair<const char*, ops::AttentionAttributes>>{
           {"", {.heads = 2, .key_heads = 2}},
           {"_causal", {.heads = 2, .key_heads = 2, .causal = true}},
           {"_grouped", {.heads = 4, .key_heads = 2, .causal = true, .scale = 0.8f}},
           {"_dropout", {.heads = 4, .key_heads = 2, .causal = true, .dropout = 0.4f}}})
    add_map(fmt::format("attention{}", name), {2 * (a.heads + 2 * a.key_heads), 5},
            [a = a](Graph& g, Value x) { return ops::attention(g, "y", {x}, a); });
  for (const ops::AttentionMask mask : {ops::AttentionMask::segments, ops::AttentionMask::keys})
    add_result(fmt::format("attention_{}", name_of(mask)), [mask](Graph& g) {
      const Value q = variable(g, "q", {4, 5}), k = variable(g, "k", {4, 5}),
                  v = variable(g, "v", {4, 5});
      return ops::attention(
          g, "y", {q, k, v, labels(g, {kBatch, 5})},
          {.heads = 2, .key_heads = 2, .mask = mask, .inputs = ops::AttentionInputs::separate});
    });
  add_result("attention_across", [](Graph& g) {
    const Value q = variable(g, "q", {4, 3}), kv = variable(g, "kv", {8, 6});
    return ops::attention(g, "y", {q, kv},
                          {.heads = 2, .key_heads = 2, .inputs = ops::AttentionInputs::q_and_kv});
  });
  for (const float smoothing : {0.f, 0.2f})
    add_loss(smoothing > 0 ? "token_loss_smooth" : "token_loss", [smoothing](Graph& g) {
      const ops::TokenLabels next = ops::count_tokens(g, "count", labels(g, {kBatch, 5}), 3);
      return ops::token_loss(g, "loss", variable(g, "x", {3, 5}), next,
                             {.label_smoothing = smoothing, .scale = 2})
          .loss;
    });
  for (const float smoothing : {0.f, 0.2f})
    add_loss(smoothing > 0 ? "token_head_smooth" : "token_head", [smoothing](Graph& g) {
      const ops::TokenLabels next = ops::count_tokens(g, "count", labels(g, {kBatch, 5}), 7);
      const Value x = variable(g, "x", {3, 5}),
                  w = g.parameter("w", {7, 3, 1}, {graph::Init::Kind::zeros});
      const ops::TokenHeadAttributes head{
          .loss = {.label_smoothing = smoothing, .scale = 2}, .data = true, .weights = true};
      const auto op = std::make_shared<ops::TokenHead>(head);
      const std::array in{x, w, next.labels, next.count};
      return g.append1("head", op, in);
    });
  // Only one rank shares the vocabulary here, so nothing is exchanged.
  for (const float smoothing : {0.f, 0.2f})
    add_loss(smoothing > 0 ? "token_loss_of_ranks_smooth" : "token_loss_of_ranks", [smoothing](
                                                                                       Graph& g) {
      const ops::TokenLabels next = ops::count_tokens(g, "count", labels(g, {kBatch, 5}), 3);
      const ops::VocabularySlice all{.first = 0, .count = 3, .all = 3};
      const Value x = variable(g, "x", {3, 5}),
                  known = g.append1("known", std::make_shared<ops::TokenStatistics>(all),
                                    {x, next.labels});
      const ops::TokenLossAttributes loss{.label_smoothing = smoothing, .scale = 2};
      return g.append1("loss", std::make_shared<ops::TokenLossOfRanks>(loss, all, 1),
                       {x, next.labels, next.count, known});
    });
  add_map("sum_of_ranks", {3, 4}, [](Graph& g, Value x) {
    const Value bias = g.parameter("bias", {3}, {graph::Init::Kind::zeros});
    return g.append1("y", std::make_shared<ops::SumOfRanks>(ops::RankGroup{}, true), {x, bias});
  });
  add_map("add_positions_from", {5, 4}, [](Graph& g, Value x) {
    const Value p = g.parameter("p", {9, 5}, {graph::Init::Kind::zeros});
    return g.append1("y", std::make_shared<ops::AddPositions>(3), {x, p});
  });
  add_map("scale", {5}, [](Graph& g, Value x) { return ops::scale(g, "y", x, 1.2f); });
  add_result("add", [](Graph& g) {
    return ops::add(g, "y", variable(g, "a", {5}), variable(g, "b", {5}));
  });
  add_result("mul", [](Graph& g) {
    return ops::mul(g, "y", variable(g, "a", {5}), variable(g, "b", {5}));
  });
  add_map("read_twice", {4}, [](Graph& g, Value x) {
    return ops::add(g, "y", ops::activation(g, "t", x, ops::ActivationKind::tanh),
                    ops::mul(g, "s", x, x));
  });
  add_map("slice", {4, 5, 3}, [](Graph& g, Value x) {
    return ops::slice(g, "y", x, {{1, 4, 2}, {0, 5, 3}, {0, 3, 1}});
  });
  add_map("pad", {2, 3}, [](Graph& g, Value x) {
    return ops::pad(g, "y", x, {1, 0}, {0, 2}, 0.5f);
  });
  add_result("concat", [](Graph& g) {
    return ops::concat(
        g, "y", {variable(g, "a", {2, 3}), variable(g, "b", {2, 1}), variable(g, "c", {2, 2})}, 2);
  });
  add_map("dropout", {11},
          [](Graph& g, Value x) { return ops::dropout(g, "y", x, 0.4f, ops::Mode::train); });
  add_loss("softmax_cross_entropy", [](Graph& g) {
    return ops::softmax_cross_entropy(g, "loss", variable(g, "x", {4}), labels(g, {kBatch}));
  });
  add_loss("softmax_cross_entropy_smooth_weighted_per_pixel", [](Graph& g) {
    return ops::softmax_cross_entropy(
        g, "loss", variable(g, "x", {4, 2, 3}), labels(g, {kBatch, 2, 3}),
        {.label_smoothing = 0.2f, .class_weights = {1, 0.5f, 2, 3}, .scale = 0.5f});
  });
  add_loss("softmax_cross_entropy_weighted_mean_over_labels", [](Graph& g) {
    return ops::softmax_cross_entropy(
        g, "loss", variable(g, "x", {4, 2, 3}), labels(g, {kBatch, 2, 3}),
        {.class_weights = {1, 0.5f, 2, 3}, .mean_over = ops::MeanOver::labels});
  });
  add_loss("softmax_cross_entropy_per_voxel", [](Graph& g) {
    return ops::softmax_cross_entropy(g, "loss", variable(g, "x", {4, 2, 1, 3}),
                                      labels(g, {kBatch, 2, 1, 3}),
                                      {.class_weights = {1, 0.5f, 2, 3}});
  });
  for (const ops::PointwiseLossKind kind :
       {ops::PointwiseLossKind::mse, ops::PointwiseLossKind::mae, ops::PointwiseLossKind::huber,
        ops::PointwiseLossKind::bce_with_logits})
    add_loss(std::string("loss_") + std::string(name_of(kind)), [kind](Graph& g) {
      const Value x = variable(g, "x", {2, 5}),
                  target = g.input("target", {DType::f32, Shape{kBatch, 2, 5}, {}});
      return ops::pointwise_loss(g, "loss", x, target,
                                 {.kind = kind, .delta = 0.6f, .pos_weight = 2.5f, .scale = 3});
    });
  add_case("two_losses",
           [](Graph& g) {  // a variational head: both ends reach the same parameters
             const Value x = variable(g, "x", {4});
             const Value mean = ops::dense(g, "mean", x, {.outputs = 3, .bias = true, .dtype = {}}),
                         logvar =
                             ops::dense(g, "logvar", x, {.outputs = 3, .bias = true, .dtype = {}});
             return std::vector<Value>{ops::gaussian_kl(g, "kl", mean, logvar, 0.3f),
                                       squared_error(g, mean)};
           });
  add_result("gaussian_sample", [](Graph& g) {
    const Value mean = variable(g, "mean", {5}), logvar = variable(g, "logvar", {5});
    return ops::gaussian_sample(g, "z", mean, logvar, 0.5f, ops::Mode::train);
  });
  return all;
}

class Gradient : public testing::TestWithParam<GradientCase> {};
TEST_P(Gradient, AgreesWithFiniteDifferences) { check_gradients(GetParam().build); }
INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tutti
