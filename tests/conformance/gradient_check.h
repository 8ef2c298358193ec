#pragma once
// Compares a gradient rule with finite differences. A small network is built around the op: x =
// reshape(dense(basis, w)) makes a batched value that depends on parameters, with as many
// degrees of freedom as x has; a squared error ends it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "interpreter.h"
#include "tutti/backend/reference/reference.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/ops/builder.h"

namespace tutti {

constexpr int64_t kBatch = 3;

/// Makes a differentiable value of the shape [kBatch, sample...].
inline graph::Value variable(graph::Graph& graph, const std::string& name, const Shape& sample) {
  const graph::Value basis = graph.input(name + ".basis", {DType::f32, Shape{kBatch, kBatch}, {}});
  const graph::Value flat = ops::dense(graph, name + ".source", basis,
                                       {.outputs = sample.elements(), .bias = false, .dtype = {}});
  return ops::reshape(graph, name, flat, sample);
}

inline graph::Value squared_error(graph::Graph& graph, graph::Value y) {
  const graph::Value target = graph.input("target", {DType::f32, graph.shape(y), {}});
  return ops::pointwise_loss(graph, "loss", y, target, {.kind = ops::PointwiseLossKind::mse});
}

using Build = std::function<std::vector<graph::Value>(graph::Graph&)>;

/// Builds y = f(x) for a sample shape, then the squared error.
inline Build through(const Shape& sample,
                     std::function<graph::Value(graph::Graph&, graph::Value)> f) {
  return [=](graph::Graph& g) {
    return std::vector<graph::Value>{squared_error(g, f(g, variable(g, "x", sample)))};
  };
}

/// Sets everything that a caller binds to random numbers.
inline void bind(const graph::Graph& graph, Interpreter& interpreter) {
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const graph::ValueInfo& info = graph.values()[i];
    if (info.producer >= 0) continue;
    uint64_t stream = 0;  // by name, so that a rewritten graph gets the same numbers
    for (const char c : info.name) stream = stream * 131 + static_cast<unsigned char>(c);
    Rng rng(5, Purpose::test, stream);
    backend::Values values(static_cast<size_t>(info.type.desc.elements()));
    for (double& v : values) {
      const double draw = rng.normal();
      v = info.type.desc.dtype == DType::i32    ? rng.below(4)
          : info.role == graph::Role::statistic ? 0.5 + std::abs(draw)
                                                : 0.7 * draw;
    }
    interpreter.set(graph::Value{static_cast<int32_t>(i)}, values);
  }
}

inline backend::OpRunOptions two_threads() {
  backend::OpRunOptions options;
  options.tile = 2;
  options.threads = 2;
  options.step = {.seed = 11, .step = 2, .replica = 1, .batch = 0};
  return options;
}

inline double total(const Interpreter& run, const std::vector<graph::Value>& losses) {
  double sum = 0;
  for (const graph::Value loss : losses) sum += run[loss][0];
  return sum;
}

inline void check_gradients(const Build& build, double tolerance = 0.01) {
  graph::Graph graph;
  const std::vector<graph::Value> losses = build(graph);
  graph::Graph forward = graph;
  for (const graph::Value p : ops::differentiate(graph, losses)) ASSERT_TRUE(p.valid());
  const backend::ReferenceBackend backend;
  Interpreter whole(graph, backend, two_threads());
  bind(graph, whole);
  whole.run();

  Interpreter run(forward, backend, two_threads());
  for (const graph::Value g : graph.with_role(graph::Role::gradient)) {
    const graph::Value parameter = graph[g].of;
    const backend::Values gradient = whole[g];
    double largest = 0;
    for (const double v : gradient) largest = std::max(largest, std::abs(v));
    ASSERT_GT(largest, 1e-6) << "the gradient of " << graph[parameter].name << " is zero";
    const auto loss_with = [&](size_t element, double change) {
      bind(forward, run);  // also restores values that the last run changed
      backend::Values values = run[parameter];
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

}  // namespace tutti
