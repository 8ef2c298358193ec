// Every gradient rule against finite differences. A small network is built around the op: x =
// reshape(dense(basis, w)) makes a batched value that depends on parameters, with as many degrees
// of freedom as x has; a squared error ends it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "interpreter.h"
#include "tutti/backend/reference/reference.h"
#include "tutti/base/rng.h"
#include "tutti/ops/broadcast.h"
#include "tutti/ops/builder.h"
#include "tutti/ops/fuse.h"
#include "tutti/ops/resize.h"

namespace tutti {
namespace {

constexpr int64_t kBatch = 3;

/// A differentiable value of the shape [kBatch, sample...].
Value variable(Graph& graph, const std::string& name, const Shape& sample) {
  const Value basis = graph.input(name + ".basis", {DType::f32, Shape{kBatch, kBatch}, {}});
  const Value flat = dense(graph, name + ".source", basis,
                           {.outputs = sample.elements(), .bias = false, .dtype = {}});
  return reshape(graph, name, flat, sample);
}

Value squared_error(Graph& graph, Value y) {
  const Value target = graph.input("target", {DType::f32, graph.shape(y), {}});
  return pointwise_loss(graph, "loss", y, target, {.kind = PointwiseLossKind::mse});
}

Value labels(Graph& graph, const Shape& shape) {
  return graph.input("labels", {DType::i32, shape, {}});
}

using Build = std::function<std::vector<Value>(Graph&)>;

/// y = f(x) for a sample shape, then the squared error.
Build through(const Shape& sample, std::function<Value(Graph&, Value)> f) {
  return [=](Graph& g) {
    return std::vector<Value>{squared_error(g, f(g, variable(g, "x", sample)))};
  };
}

/// Random numbers for everything that a caller binds.
void bind(const Graph& graph, Interpreter& interpreter) {
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const ValueInfo& info = graph.values()[i];
    if (info.producer >= 0) continue;
    uint64_t stream = 0;  // by name, so that a rewritten graph gets the same numbers
    for (const char c : info.name) stream = stream * 131 + static_cast<unsigned char>(c);
    Rng rng(5, Purpose::test, stream);
    Values values(static_cast<size_t>(info.type.desc.elements()));
    for (double& v : values) {
      const double draw = rng.normal();
      v = info.type.desc.dtype == DType::i32 ? rng.below(4)
          : info.role == Role::statistic     ? 0.5 + std::abs(draw)
                                             : 0.7 * draw;
    }
    interpreter.set(Value{static_cast<int32_t>(i)}, values);
  }
}

OpRunOptions two_threads() {
  OpRunOptions options;
  options.tile = 2;
  options.threads = 2;
  options.step = {.seed = 11, .step = 2, .replica = 1, .batch = 0};
  return options;
}

double total(const Interpreter& run, const std::vector<Value>& losses) {
  double sum = 0;
  for (const Value loss : losses) sum += run[loss][0];
  return sum;
}

void check_gradients(const Build& build, double tolerance = 0.01) {
  Graph graph;
  const std::vector<Value> losses = build(graph);
  Graph forward = graph;
  for (const Value p : differentiate(graph, losses)) ASSERT_TRUE(p.valid());
  const ReferenceBackend backend;
  Interpreter whole(graph, backend, two_threads());
  bind(graph, whole);
  whole.run();

  Interpreter run(forward, backend, two_threads());
  for (const Value g : graph.with_role(Role::gradient)) {
    const Value parameter = graph[g].of;
    const Values gradient = whole[g];
    double largest = 0;
    for (const double v : gradient) largest = std::max(largest, std::abs(v));
    ASSERT_GT(largest, 1e-6) << "the gradient of " << graph[parameter].name << " is zero";
    const auto loss_with = [&](size_t element, double change) {
      bind(forward, run);  // also restores what the last run changed
      Values values = run[parameter];
      values[element] += change;
      run.set(parameter, values);
      run.run();
      return total(run, losses);
    };
    for (size_t k = 0; k < std::min<size_t>(gradient.size(), 6); ++k) {
      const size_t element = k * 7919 % gradient.size();
      const double step = 2e-3,
                   slope = (loss_with(element, step) - loss_with(element, -step)) / (2 * step);
      EXPECT_NEAR(gradient[element], slope, tolerance * largest + 1e-4)
          << graph[parameter].name << "[" << element << "]";
    }
  }
}

/// The same graph with its nodes fused as for training.
Build fused(Build build) {
  return [build = std::move(build)](Graph& graph) {
    std::vector<Value> losses = build(graph);
    Rewritten rewritten = fuse_forward(graph);
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
  const auto add_map = [&](std::string name, const Shape& sample,
                           std::function<Value(Graph&, Value)> f) {
    add_case(std::move(name), through(sample, std::move(f)));
  };

  const auto add_fused = [&](std::string name, const Shape& sample,
                             std::function<Value(Graph&, Value)> f) {
    add_case(std::move(name), fused(through(sample, std::move(f))));
  };

  add_map("conv", {3, 5, 4}, [](Graph& g, Value x) {
    return conv(g, "y", x,
                {.out_channels = 4, .kernel = in_all(3), .pad = in_all(1), .bias = true});
  });
  add_fused("conv_relu", {3, 5, 4}, [](Graph& g, Value x) {
    return conv(g, "y", x,
                {.out_channels = 4,
                 .kernel = in_all(3),
                 .pad = in_all(1),
                 .bias = true,
                 .activation = ActivationAttributes{}});
  });
  add_fused("conv_leaky_relu", {3, 5, 4}, [](Graph& g, Value x) {
    return conv(g, "y", x,
                {.out_channels = 4,
                 .kernel = in_all(2),
                 .pad_high = in_all(1),
                 .bias = true,
                 .activation = ActivationAttributes{ActivationKind::leaky_relu, 0.3f}});
  });
  add_fused("conv_tanh", {3, 5, 4}, [](Graph& g, Value x) {
    return conv(g, "y", x,
                {.out_channels = 4,
                 .kernel = in_all(3),
                 .pad = in_all(1),
                 .activation = ActivationAttributes{ActivationKind::tanh}});
  });
  add_map("conv_strided_grouped_dilated", {4, 7, 6}, [](Graph& g, Value x) {
    return conv(g, "y", x,
                {.out_channels = 6,
                 .kernel = {3, 2, 1},
                 .stride = {2, 1, 1},
                 .dilation = {1, 2, 1},
                 .pad = {1, 0, 0},
                 .pad_high = std::array<int64_t, 3>{2, 1, 0},
                 .groups = 2});
  });
  add_map("conv_3d", {2, 4, 3, 5}, [](Graph& g, Value x) {
    return conv(g, "y", x,
                {.out_channels = 3, .kernel = {3, 2, 3}, .stride = {2, 1, 1}, .pad = {1, 0, 1}});
  });
  add_map("conv_transpose", {4, 3, 4}, [](Graph& g, Value x) {
    return conv_transpose(g, "y", x,
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
      add_case(std::string("batch_norm") + (relu ? "_relu" : "") + (residual ? "_residual" : ""),
               [=](Graph& g) {
                 const Value y = variable(g, "y", {3, 4, 2}),
                             other = residual ? variable(g, "other", {3, 4, 2}) : Value{};
                 return std::vector<Value>{squared_error(
                     g, batch_norm(g, "bn", y, Mode::train, {.relu = relu, .residual = other}))};
               });
  add_map("dense", {2, 3, 2}, [](Graph& g, Value x) {
    return dense(g, "y", x, {.outputs = 4, .bias = true, .dtype = {}});
  });
  for (const ActivationKind kind :
       {ActivationKind::relu, ActivationKind::leaky_relu, ActivationKind::sigmoid,
        ActivationKind::tanh, ActivationKind::gelu})
    add_map(std::string("activation_") + std::string(name_of(kind)), {7},
            [kind](Graph& g, Value x) { return activation(g, "y", x, kind, 0.2f); });
  add_map("max_pool", {2, 5, 6}, [](Graph& g, Value x) {
    return pool(g, "y", x,
                {.kind = PoolKind::max,
                 .kernel = {3, 2, 1},
                 .stride = {2, 2, 1},
                 .pad_low = {1, 0, 0},
                 .pad_high = {1, 0, 0}});
  });
  add_fused("max_pool_of_relu", {2, 4, 6}, [](Graph& g, Value x) {
    const ConvSpec spec{.out_channels = 3,
                        .kernel = in_all(3),
                        .pad = in_all(1),
                        .bias = true,
                        .activation = ActivationAttributes{ActivationKind::leaky_relu, 0.3f}};
    return pool(g, "y", conv(g, "conv", x, spec),
                {.kind = PoolKind::max, .kernel = in_all(2), .stride = in_all(2)});
  });
  add_map("average_pool", {2, 5, 6}, [](Graph& g, Value x) {
    return pool(g, "y", x,
                {.kind = PoolKind::average,
                 .kernel = {3, 2, 1},
                 .stride = {2, 1, 1},
                 .pad_low = {1, 1, 0},
                 .pad_high = {1, 0, 0},
                 .count_include_pad = false});
  });
  add_map("average_pool_3d", {2, 4, 3, 4}, [](Graph& g, Value x) {
    return pool(g, "y", x,
                {.kind = PoolKind::average,
                 .kernel = in_all(2),
                 .stride = in_all(2),
                 .pad_low = in_all(1),
                 .pad_high = in_all(1)});
  });
  add_map("global_average_pool", {3, 2, 4},
          [](Graph& g, Value x) { return global_average_pool(g, "y", x); });
  add_map("broadcast", {3, 1, 1}, [](Graph& g, Value x) { return broadcast(g, "y", x, {4, 5}); });
  add_map("broadcast_3d", {3, 1, 1, 1}, [](Graph& g, Value x) {
    return broadcast(g, "y", x, {2, 3, 4});
  });
  add_map("resize", {3, 2, 4}, [](Graph& g, Value x) { return resize(g, "y", x, {3, 2, 1}); });
  add_map("resize_1d", {3, 4}, [](Graph& g, Value x) { return resize(g, "y", x, in_all(2)); });
  add_map("resize_3d", {2, 2, 1, 3}, [](Graph& g, Value x) {
    return resize(g, "y", x, {2, 3, 1});
  });
  add_map("resize_of_some_rows", {2, 3, 2}, [](Graph& g, Value x) {
    return g.append1("y",
                     std::make_shared<Resize>(ResizeAttributes{
                         .factor = {2, 2, 1}, .first = {1, 0, 0}, .count = {4, 0, 0}}),
                     {x});
  });
  add_map("spatial_sum", {3, 2, 4},
          [](Graph& g, Value x) { return g.append1("y", std::make_shared<SpatialSum>(), {x}); });
  add_map("scale", {5}, [](Graph& g, Value x) { return scale(g, "y", x, 1.2f); });
  add_case("add", [](Graph& g) {
    return std::vector<Value>{
        squared_error(g, add(g, "y", variable(g, "a", {5}), variable(g, "b", {5})))};
  });
  add_case("mul", [](Graph& g) {
    return std::vector<Value>{
        squared_error(g, mul(g, "y", variable(g, "a", {5}), variable(g, "b", {5})))};
  });
  add_map("read_twice", {4}, [](Graph& g, Value x) {
    return add(g, "y", activation(g, "t", x, ActivationKind::tanh), mul(g, "s", x, x));
  });
  add_map("slice", {4, 5, 3}, [](Graph& g, Value x) {
    return slice(g, "y", x, {{1, 4, 2}, {0, 5, 3}, {0, 3, 1}});
  });
  add_map("pad", {2, 3}, [](Graph& g, Value x) { return pad(g, "y", x, {1, 0}, {0, 2}, 0.5f); });
  add_case("concat", [](Graph& g) {
    return std::vector<Value>{squared_error(
        g,
        concat(g, "y",
               {variable(g, "a", {2, 3}), variable(g, "b", {2, 1}), variable(g, "c", {2, 2})}, 2))};
  });
  add_map("dropout", {11}, [](Graph& g, Value x) { return dropout(g, "y", x, 0.4f, Mode::train); });
  add_case("softmax_cross_entropy", [](Graph& g) {
    return std::vector<Value>{
        softmax_cross_entropy(g, "loss", variable(g, "x", {4}), labels(g, {kBatch}))};
  });
  add_case("softmax_cross_entropy_smooth_weighted_per_pixel", [](Graph& g) {
    return std::vector<Value>{softmax_cross_entropy(
        g, "loss", variable(g, "x", {4, 2, 3}), labels(g, {kBatch, 2, 3}),
        {.label_smoothing = 0.2f, .class_weights = {1, 0.5f, 2, 3}, .scale = 0.5f})};
  });
  add_case("softmax_cross_entropy_weighted_mean_over_labels", [](Graph& g) {
    return std::vector<Value>{
        softmax_cross_entropy(g, "loss", variable(g, "x", {4, 2, 3}), labels(g, {kBatch, 2, 3}),
                              {.class_weights = {1, 0.5f, 2, 3}, .mean_over = MeanOver::labels})};
  });
  add_case("softmax_cross_entropy_per_voxel", [](Graph& g) {
    return std::vector<Value>{softmax_cross_entropy(g, "loss", variable(g, "x", {4, 2, 1, 3}),
                                                    labels(g, {kBatch, 2, 1, 3}),
                                                    {.class_weights = {1, 0.5f, 2, 3}})};
  });
  for (const PointwiseLossKind kind :
       {PointwiseLossKind::mse, PointwiseLossKind::mae, PointwiseLossKind::huber,
        PointwiseLossKind::bce_with_logits})
    add_case(std::string("loss_") + std::string(name_of(kind)), [kind](Graph& g) {
      const Value x = variable(g, "x", {2, 5}),
                  target = g.input("target", {DType::f32, Shape{kBatch, 2, 5}, {}});
      return std::vector<Value>{pointwise_loss(
          g, "loss", x, target, {.kind = kind, .delta = 0.6f, .pos_weight = 2.5f, .scale = 3})};
    });
  add_case("two_losses", [](Graph& g) {  // a variational head: both ends reach the same parameters
    const Value x = variable(g, "x", {4});
    const Value mean = dense(g, "mean", x, {.outputs = 3, .bias = true, .dtype = {}}),
                logvar = dense(g, "logvar", x, {.outputs = 3, .bias = true, .dtype = {}});
    return std::vector<Value>{gaussian_kl(g, "kl", mean, logvar, 0.3f), squared_error(g, mean)};
  });
  return all;
}

class Gradient : public testing::TestWithParam<GradientCase> {};
TEST_P(Gradient, AgreesWithFiniteDifferences) { check_gradients(GetParam().build); }
INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

/// conv -> bn -> relu -> conv -> bn -> add(x) -> relu, twice, as one writes it without fused ops.
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
  EXPECT_EQ(count(folded.graph, "add"), 1);  // the input is no batch norm's result
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
  for (const ActivationKind kind :
       {ActivationKind::relu, ActivationKind::leaky_relu, ActivationKind::sigmoid,
        ActivationKind::tanh, ActivationKind::gelu}) {
    Graph g;
    const Value y = conv(g, "conv", variable(g, "x", {2, 3, 3}), {.out_channels = 2, .bias = true});
    squared_error(g, activation(g, "act", y, kind, 0.3f));
    const Graph fused = fuse_forward(g).graph;
    EXPECT_EQ(count(fused, "activation"), kind == ActivationKind::gelu ? 1 : 0) << name_of(kind);
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

}  // namespace
}  // namespace tutti
