// Tests CosmoFlow against an independent computation in double precision, and the gradients of
// CosmoFlow, DeepCAM, FC-DenseNet and VGG against finite differences, on instances small enough for
// plain loops.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "double_interpreter.h"
#include "interpreter.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/reference/reference.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/models/network/cosmoflow.h"
#include "tutti/models/network/deepcam.h"
#include "tutti/models/network/fc_densenet.h"
#include "tutti/models/network/vgg.h"
#include "tutti/ops/fusion/fuse.h"

namespace tutti {
namespace {

using backend::Values;
using graph::Graph;
using graph::Value;

/// The values that a caller binds, by name.
using Bound = std::map<std::string, Values>;

uint64_t stream_of(std::string_view name) {
  uint64_t stream = 0;
  for (const char c : name) stream = stream * 131 + static_cast<unsigned char>(c);
  return stream;
}

/// Makes random inputs, and weights whose effect neither fades nor grows from layer to layer.
Bound random_values(const Graph& graph, uint32_t classes) {
  Bound bound;
  for (const graph::ValueInfo& info : graph.values()) {
    if (info.producer >= 0) continue;
    const Shape& shape = info.type.desc.shape;
    Rng rng(9, Purpose::test, stream_of(info.name));
    const double fan = shape.rank() > 1 ? static_cast<double>(shape.elements_from(1)) : 0;
    const bool weight = info.role == graph::Role::parameter;
    Values& values = bound[info.name];
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const auto draw = static_cast<float>(rng.normal());
      if (info.type.desc.dtype == DType::i32)
        values.push_back(rng.below(classes));
      else if (info.role == graph::Role::statistic ||
               (weight && fan == 0 && info.name.ends_with("weight")))
        values.push_back(static_cast<double>(1 + 0.2f * draw));
      else
        values.push_back(weight ? static_cast<float>((fan > 0 ? std::sqrt(2 / fan) : 0.1) *
                                                     static_cast<double>(draw))
                                : draw);
    }
  }
  return bound;
}

template <class AnyInterpreter>
void bind_values(const Graph& graph, AnyInterpreter& run, const Bound& bound) {
  for (size_t i = 0; i < graph.values().size(); ++i)
    if (graph.values()[i].producer < 0)
      run.set(Value{static_cast<int32_t>(i)}, bound.at(graph.values()[i].name));
}

struct Network {
  Graph forward, graph;  ///< without and with gradients
  Value out, loss;
};

void differentiate_loss(Network& n) {
  n.forward = n.graph;
  for (const Value p : ops::differentiate(n.graph, std::array{n.loss})) ASSERT_TRUE(p.valid());
}

/// Adds the loss of a prediction of numbers, and its gradients.
void add_loss(Network& n, ops::PointwiseLossKind kind) {
  const Value target = n.graph.input("target", {DType::f32, n.graph.shape(n.out), {}});
  n.loss = ops::pointwise_loss(n.graph, "loss", n.out, target, {.kind = kind});
  differentiate_loss(n);
}

Network small_cosmoflow(const models::CosmoFlowSpec& spec) {
  Network n;
  const Value volume = n.graph.input("volume", {DType::f32, {2, 4, 32, 32, 32}, {}});
  n.out = models::cosmoflow_prediction(n.graph, volume, spec);
  add_loss(n, ops::PointwiseLossKind::mse);
  return n;
}

/// A volume of one sample, [channels, side, side, side], in double precision.
struct Volume {
  int64_t channels, side;
  Values values;

  Volume(int64_t c, int64_t s) : channels(c), side(s), values(static_cast<size_t>(c * s * s * s)) {}
  size_t place(int64_t c, int64_t d, int64_t h, int64_t w) const {
    return static_cast<size_t>(((c * side + d) * side + h) * side + w);
  }
};

double leaky(double x) { return x < 0 ? static_cast<double>(0.3f) * x : x; }

/// Computes a convolution that keeps the extents, with (k - 1) / 2 zeros before, then leaky ReLU.
Volume convolve(const Volume& x, const Values& weights, const Values& bias, int64_t k) {
  Volume y(static_cast<int64_t>(bias.size()), x.side);
  const int64_t s = x.side, before = (k - 1) / 2;
  const auto inside = [s](int64_t i) { return i >= 0 && i < s; };
  for (int64_t o = 0; o < y.channels; ++o)
    for (int64_t d = 0; d < s; ++d)
      for (int64_t h = 0; h < s; ++h)
        for (int64_t w = 0; w < s; ++w) {
          double sum = bias[static_cast<size_t>(o)];
          for (int64_t tap = 0; tap < k * k * k; ++tap) {
            const int64_t i = d + tap / (k * k) - before, j = h + tap / k % k - before,
                          l = w + tap % k - before;
            if (!inside(i) || !inside(j) || !inside(l)) continue;
            for (int64_t c = 0; c < x.channels; ++c)
              sum += weights[static_cast<size_t>((o * x.channels + c) * k * k * k + tap)] *
                     x.values[x.place(c, i, j, l)];
          }
          y.values[y.place(o, d, h, w)] = leaky(sum);
        }
  return y;
}

Volume maximum_of_eight(const Volume& x) {
  Volume y(x.channels, x.side / 2);
  for (int64_t c = 0; c < y.channels; ++c)
    for (int64_t d = 0; d < y.side; ++d)
      for (int64_t h = 0; h < y.side; ++h)
        for (int64_t w = 0; w < y.side; ++w) {
          double& most = y.values[y.place(c, d, h, w)] = -INFINITY;
          for (int64_t i = 0; i < 8; ++i)
            most = std::max(most,
                            x.values[x.place(c, 2 * d + i / 4, 2 * h + i / 2 % 2, 2 * w + i % 2)]);
        }
  return y;
}

Values matrix_product(const Values& weights, const Values& bias, const Values& x) {
  Values y = bias;
  for (size_t o = 0; o < y.size(); ++o)
    for (size_t i = 0; i < x.size(); ++i) y[o] += weights[o * x.size() + i] * x[i];
  return y;
}

/// Computes all predictions, without dropout.
Values predictions(const Bound& bound, const models::CosmoFlowSpec& spec) {
  const auto weights = [&](const std::string& layer) { return bound.at(layer + ".weight"); };
  const auto bias = [&](const std::string& layer) { return bound.at(layer + ".bias"); };
  Values all;
  for (int64_t n = 0; n < 2; ++n) {
    Volume x(4, 32);
    const auto first = bound.at("volume").begin() + n * static_cast<int64_t>(x.values.size());
    std::copy_n(first, x.values.size(), x.values.begin());
    for (const std::string layer : {"conv1", "conv2", "conv3", "conv4", "conv5"})
      x = maximum_of_eight(convolve(x, weights(layer), bias(layer), spec.kernel));
    Values y = x.values;
    for (const std::string layer : {"fc1", "fc2"}) {
      y = matrix_product(weights(layer), bias(layer), y);
      std::ranges::transform(y, y.begin(), leaky);
    }
    for (const double v : matrix_product(weights("fc3"), bias("fc3"), y))
      all.push_back(static_cast<double>(1.2f) * std::tanh(v));
  }
  return all;
}

double squared_error_of(const Bound& bound, const models::CosmoFlowSpec& spec) {
  const Values x = predictions(bound, spec), &t = bound.at("target");
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - t[i]) * (x[i] - t[i]);
  return sum / static_cast<double>(x.size());
}

class CosmoFlowKernel : public testing::TestWithParam<int64_t> {};

TEST_P(CosmoFlowKernel, AgreesWithAnIndependentComputation) {
  const models::CosmoFlowSpec spec{
      .kernel = GetParam(), .channels = 1, .hidden = {6, 5}, .dropout = 0};
  const Network n = small_cosmoflow(spec);
  Bound bound = random_values(n.graph, 0);
  const Values want = predictions(bound, spec);
  const backend::CpuBackend cpu;
  const backend::ReferenceBackend reference;
  for (const backend::Backend* const backend : {static_cast<const backend::Backend*>(&reference),
                                                static_cast<const backend::Backend*>(&cpu)}) {
    Interpreter run(n.graph, *backend);
    bind_values(n.graph, run, bound);
    run.run();
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(run[n.out][i], want[i], 2e-5) << backend->name() << " " << i;
    EXPECT_NEAR(run[n.loss][0], squared_error_of(bound, spec), 2e-5);
    if (backend == &reference) continue;  // one set of gradients is enough
    for (const Value g : n.graph.with_role(graph::Role::gradient)) {
      const std::string& name = n.graph[n.graph[g].of].name;
      double largest = 0;
      for (const double v : run[g]) largest = std::max(largest, std::abs(v));
      EXPECT_GT(largest, 1e-5) << name;
      if (spec.kernel == 3 && name.ends_with("bias")) continue;  // as with kernel 2, but slow
      const size_t element = 7919 % run[g].size();
      const auto loss_with = [&](double change) {
        Bound other = bound;
        other[name][element] += change;
        return squared_error_of(other, spec);
      };
      EXPECT_NEAR(run[g][element], (loss_with(1e-6) - loss_with(-1e-6)) / 2e-6,
                  1e-3 * largest + 1e-7)
          << name << "[" << element << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, CosmoFlowKernel, testing::Values(2, 3),
                         [](const auto& info) { return std::to_string(info.param); });

/// Whether it is a convolution's bias: a batch norm behind it removes its mean again.
bool may_have_no_slope(const std::string& name) {
  constexpr std::array kPlaces = {0, 4, 8, 11, 15, 18, 22, 25};  // places of VGG-11's convolutions
  return name.ends_with("conv.bias") || name.ends_with("convTrans.bias") ||
         std::ranges::any_of(
             kPlaces, [&](int place) { return name == fmt::format("features.{}.bias", place); });
}

/// Checks for every parameter that the slope of the loss along its gradient is the gradient's
/// length.
void check_slopes(const Network& n, uint32_t classes) {
  const Bound bound = random_values(n.graph, classes);
  const backend::StepInfo step{.seed = 11, .step = 2, .replica = 1, .batch = 2};
  DoubleInterpreter whole(n.graph, step), run(n.forward, step);
  bind_values(n.graph, whole, bound);
  whole.run();
  bind_values(n.forward, run, bound);
  for (const Value g : n.graph.with_role(graph::Role::gradient)) {
    const Value parameter = n.graph[g].of;
    double squares = 0;
    for (const double v : whole[g]) squares += v * v;
    const double length = std::sqrt(squares), move = 1e-8;
    if (length < 1e-9 && may_have_no_slope(n.graph[parameter].name)) continue;
    EXPECT_GT(length, 1e-9) << n.graph[parameter].name;
    const Values& start = bound.at(n.graph[parameter].name);
    const auto loss_with = [&](double change) {
      Values moved = start;
      for (size_t i = 0; i < moved.size(); ++i) moved[i] += change * whole[g][i] / length;
      run.set(parameter, moved);
      run.run();
      return run[n.loss][0];
    };
    EXPECT_NEAR((loss_with(move) - loss_with(-move)) / (2 * move), length, 1e-4 * length + 1e-7)
        << n.graph[parameter].name;
    run.set(parameter, start);
  }
}

TEST(Networks, SmallCosmoFlowWithDropoutHasTheSlopesOfItsLoss) {
  check_slopes(small_cosmoflow({.kernel = 2, .channels = 1, .hidden = {16, 12}}), 0);
}

TEST(Networks, SmallDeepCamHasTheSlopesOfItsLoss) {
  Network n;
  const Value fields = n.graph.input("fields", {DType::f32, {2, 4, 32, 64}, {}});
  n.out = models::deepcam_logits(n.graph, fields, {.divisor = 32, .middle_blocks = 1});
  const Value labels = n.graph.input("labels", {DType::i32, {2, 32, 64}, {}});
  n.loss = ops::softmax_cross_entropy(
      n.graph, "loss", n.out, labels,
      {.class_weights = {1.0f, 2.6f, 1.7f}, .mean_over = ops::MeanOver::labels});
  differentiate_loss(n);
  check_slopes(n, 3);
}

TEST(Networks, SmallFcDenseNetHasTheSlopesOfItsLoss) {
  Network n;
  const Value pattern = n.graph.input("pattern", {DType::f32, {2, 1, 16, 8}, {}});
  n.out = models::fc_densenet_prediction(
      n.graph, pattern,
      {.outputs = 1, .layers = {2, 1}, .bottleneck = 2, .growth = 3, .first = 4, .dropout = 0.2f});
  add_loss(n, ops::PointwiseLossKind::huber);
  check_slopes(n, 0);
}

TEST(Networks, SmallVggHasTheSlopesOfItsLoss) {
  Network n;
  const Value pattern = n.graph.input("pattern", {DType::f32, {2, 1, 64, 64}, {}});
  const models::ModelSpec spec{.classes = 4, .width = 2, .hidden = {8, 8}, .dropout = 0.5f};
  n.out = models::vgg_bn_logits(n.graph, pattern, spec, 11);
  add_loss(n, ops::PointwiseLossKind::huber);
  check_slopes(n, 0);
}

}  // namespace
}  // namespace tutti
